package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"belfry/test/kit"
)

// server is a process that is measured.
type server struct {
	name  string
	cmd   *exec.Cmd
	base  string
	data  string        // belfry's data folder
	ready time.Duration // from the start of the process to its first successful response
	pause time.Duration // between two polls of its metrics, where these are expensive
	done  chan error
}

var address = regexp.MustCompile(`http://\S+`)

// start starts a program that prints its address.
func start(ctx context.Context, name, program string, args ...string) (*server, error) {
	return startWith(ctx, name, nil, program, args...)
}

// startWith starts a program that reads an input before it prints its address.
func startWith(ctx context.Context, name string, in io.Reader, program string, args ...string) (*server, error) {
	return startOn(ctx, nil, name, in, program, args...)
}

// startOn is startWith for a program that is bound to processors; none: to none.
func startOn(ctx context.Context, processors []int, name string, in io.Reader, program string,
	args ...string) (*server, error) {
	s := &server{name: name, cmd: exec.CommandContext(ctx, program, args...), done: make(chan error, 1)}
	s.cmd.Stdin = in
	s.cmd.Cancel = func() error { return s.cmd.Process.Signal(syscall.SIGTERM) }
	s.cmd.Stderr = os.Stderr
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	began := time.Now()
	if err := kit.StartOn(s.cmd, processors); err != nil {
		return nil, err
	}
	lines := bufio.NewReader(out)
	for s.base == "" {
		line, err := lines.ReadString('\n')
		if err != nil {
			return nil, fmt.Errorf("%s did not print its address: %w", name, err)
		}
		s.base = address.FindString(line)
	}
	go func() {
		_, _ = io.Copy(io.Discard, lines)
		s.done <- s.cmd.Wait()
	}()
	for ; ; time.Sleep(time.Millisecond) {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.base+"/readyz", nil)
		if err != nil {
			return nil, err
		}
		if res, err := http.DefaultClient.Do(req); err == nil {
			_ = res.Body.Close()
			if res.StatusCode == http.StatusOK {
				s.ready = time.Since(began)
				return s, nil
			}
		}
		if time.Since(began) > time.Minute {
			return nil, fmt.Errorf("%s is not ready after a minute", name)
		}
	}
}

func (s *server) stop() error {
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	err := <-s.done
	if s.name != "belfry" {
		return nil // ends by the signal
	}
	return err
}

// status reads a number of KiB from the kernel's view of the process, in bytes.
func (s *server) status(field string) int64 {
	data, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(s.cmd.Process.Pid), "status"))
	if err != nil {
		return 0
	}
	for _, line := range strings.Split(string(data), "\n") {
		if value, ok := strings.CutPrefix(line, field+":"); ok {
			n, _ := strconv.ParseInt(strings.Fields(value)[0], 10, 64)
			return n << 10
		}
	}
	return 0
}

// resident is the memory that the process holds now.
func (s *server) resident() int64 { return s.status("VmRSS") }

// resetPeak resets VmHWM, the peak of resident memory.
func (s *server) resetPeak() error {
	return os.WriteFile(filepath.Join("/proc", strconv.Itoa(s.cmd.Process.Pid), "clear_refs"), []byte("5"), 0)
}

// cpu is the processor time used so far.
func (s *server) cpu() time.Duration {
	data, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(s.cmd.Process.Pid), "stat"))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(data[strings.LastIndexByte(string(data), ')')+2:]))
	user, _ := strconv.ParseInt(fields[11], 10, 64)
	system, _ := strconv.ParseInt(fields[12], 10, 64)
	return time.Duration(user+system) * 10 * time.Millisecond
}

// build builds a program of a module, whose folder is relative to that of benchmarks.
func build(ctx context.Context, module, folder, name, pkg string) (string, error) {
	path := filepath.Join(folder, name)
	cmd := exec.CommandContext(ctx, "go", "build", "-C", module, "-o", path, pkg)
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		return "", err
	}
	uncache(path)
	return path, nil
}

// uncache has the kernel forget a program that was just written, which it would map in larger pieces than one that it
// reads. Where that is not possible, a process that is idle has more memory.
func uncache(program string) {
	_ = exec.Command("sync", program).Run()
	_ = exec.Command("dd", "if="+program, "iflag=nocache", "count=0").Run()
}
