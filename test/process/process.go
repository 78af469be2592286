// Package process runs the real belfry for tests: built once with the race
// detector, started on free ports, killed or stopped by its own process id.
package process

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

var (
	built     sync.Once
	program   string
	buildFail error
)

// Program builds belfry and returns the path of the binary.
func Program(t testing.TB) string {
	t.Helper()
	built.Do(func() {
		var folder string
		if folder, buildFail = os.MkdirTemp("", "belfry-test-"); buildFail != nil {
			return
		}
		program = filepath.Join(folder, "belfry")
		if out, err := exec.Command("go", "build", "-race", "-o", program, "belfry/cmd/belfry").CombinedOutput(); err != nil {
			buildFail = fmt.Errorf("%w\n%s", err, out)
		}
	})
	if buildFail != nil {
		t.Fatalf("building belfry: %v", buildFail)
	}
	return program
}

// Main runs the tests of a package and removes what Program built.
func Main(m *testing.M) {
	if folder := os.Getenv(busFolder); folder != "" {
		if err := serveBus(folder); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	code := m.Run()
	if program != "" {
		_ = os.RemoveAll(filepath.Dir(program))
	}
	os.Exit(code)
}

// Server is a belfry that serves.
type Server struct {
	URL    string
	cmd    *exec.Cmd
	stderr *tail
	done   chan struct{}
	err    error // of the process, once done is closed
}

var address = regexp.MustCompile(`http://\S+`)

// Serve starts belfry with a configuration and waits until it is ready. The
// process is killed at the end of the test if it still runs.
func Serve(t testing.TB, config string, args ...string) *Server {
	t.Helper()
	s := &Server{stderr: &tail{}, done: make(chan struct{})}
	s.cmd = exec.Command(Program(t), append([]string{"serve", "--config", config}, args...)...)
	s.cmd.Stderr = s.stderr
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(out)
	for err == nil && s.URL == "" {
		var line string
		line, err = lines.ReadString('\n')
		s.URL = address.FindString(line)
	}
	go func() {
		_, _ = io.Copy(io.Discard, lines)
		s.err = s.cmd.Wait()
		close(s.done)
	}()
	t.Cleanup(func() {
		s.Kill()
		if strings.Contains(s.stderr.String(), "DATA RACE") {
			t.Errorf("belfry has a data race:\n%s", s.stderr)
		}
	})
	if err != nil {
		<-s.done
		t.Fatalf("belfry did not start: %v\n%s", s.err, s.stderr)
	}
	return s
}

// Kill ends the process as a power cut would end it, and waits for its end.
func (s *Server) Kill() {
	_ = s.cmd.Process.Kill()
	<-s.done
}

// Stop asks the process to stop and returns how it ended.
func (s *Server) Stop() error {
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	<-s.done
	return s.err
}

// Log is the end of what the process has written to standard error.
func (s *Server) Log() string { return s.stderr.String() }

// Run runs a belfry command to its end.
func Run(t testing.TB, args ...string) (stdout, stderr string, exit int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, Program(t), args...)
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	err := cmd.Run()
	var ended *exec.ExitError
	if err != nil && !errors.As(err, &ended) {
		t.Fatalf("belfry %s: %v", strings.Join(args, " "), err)
	}
	return out.String(), errOut.String(), cmd.ProcessState.ExitCode()
}

// FreePort returns a loopback port that was free a moment ago.
func FreePort(t testing.TB) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port
}

// Eventually waits until right returns nil, and fails with its last error.
func Eventually(t testing.TB, patience time.Duration, right func() error) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for {
		err := right()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("still after %s: %v", patience, err)
		}
		<-time.After(10 * time.Millisecond)
	}
}

// Metric sums a metric of a server over its labels.
func (s *Server) Metric(name string) (float64, error) {
	res, err := http.Get(s.URL + "/metrics")
	if err != nil {
		return 0, err
	}
	defer func() { _ = res.Body.Close() }()
	sum, found := 0.0, false
	for lines := bufio.NewScanner(res.Body); lines.Scan(); {
		line := lines.Text()
		if !strings.HasPrefix(line, name+"{") && !strings.HasPrefix(line, name+" ") {
			continue
		}
		var v float64
		if _, err := fmt.Sscan(line[strings.LastIndexByte(line, ' ')+1:], &v); err != nil {
			return 0, err
		}
		sum, found = sum+v, true
	}
	if !found {
		return 0, fmt.Errorf("no metric %s", name)
	}
	return sum, nil
}

// Idle waits until every event is published and every worker has handled all.
func (s *Server) Idle(t testing.TB) {
	t.Helper()
	Eventually(t, time.Minute, func() error {
		for _, name := range []string{"belfry_events_pending", "belfry_listener_pending"} {
			if n, err := s.Metric(name); err != nil || n != 0 {
				return fmt.Errorf("%s is %v (%v)", name, n, err)
			}
		}
		return nil
	})
}

// tail keeps the last of what is written to it.
type tail struct {
	mu   sync.Mutex
	data []byte
}

const tailSize = 64 << 10

func (l *tail) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.data = append(l.data, p...)
	if extra := len(l.data) - tailSize; extra > 0 {
		l.data = append(l.data[:0], l.data[extra:]...)
	}
	return len(p), nil
}

func (l *tail) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.data)
}
