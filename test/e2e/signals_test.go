package e2e

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"belfry/test/kit"
	"belfry/test/process"
)

// A request in flight when belfry receives a stop signal is answered, its object is
// durable, and its event is handled by the workers before the process exits with 0.
func TestStopFinishesRequestsInFlight(t *testing.T) {
	t.Parallel()
	for name, signal := range map[string]os.Signal{"terminated": syscall.SIGTERM, "interrupted": os.Interrupt} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "belfry.yaml")
			if err := os.WriteFile(file, []byte(books), 0o600); err != nil {
				t.Fatal(err)
			}
			s := process.Serve(t, file, "--listen", "127.0.0.1:0")
			if r, err := dial(t,
				s).exchange(head("POST", "/authors", "Content-Length: 13") + `{"uuid":"a1"}`); err != nil ||
				r.status != http.StatusCreated {
				t.Fatal(err, r.status)
			}

			const body = `{"uuid":"b1","author":"a1","title":"In flight"}`
			w := dial(t, s)
			send(t, w, head("POST", "/books", "Expect: 100-continue", fmt.Sprintf("Content-Length: %d", len(body))))
			// 100 Continue means that the handler reads the body.
			if line, err := w.in.ReadString('\n'); err != nil || !strings.Contains(line, "100 Continue") {
				t.Fatal(line, err)
			}
			if _, err := w.in.ReadString('\n'); err != nil {
				t.Fatal(err)
			}
			send(t, w, body[:10])
			if err := s.Signal(signal); err != nil {
				t.Fatal(err)
			}
			// The listening socket is closed first.
			process.Eventually(t, patience, func() error {
				if listens(s) {
					return errors.New("belfry still accepts connections")
				}
				return nil
			})
			send(t, w, body[10:])
			if r, err := w.response(); err != nil || r.status != http.StatusCreated {
				t.Fatalf("in flight: %v, status %d: %s", err, r.status, r.body)
			}
			if err := s.Wait(); err != nil {
				t.Fatalf("belfry ended with %v\n%s", err, s.Log())
			}

			s = process.Serve(t, file, "--listen", "127.0.0.1:0")
			process.Eventually(t, patience, func() error {
				r, err := dial(t, s).exchange(head("GET", "/authors/a1"))
				if err != nil {
					return err
				}
				return compare(r.body, "books", `[{"uuid":"b1","title":"In flight"}]`)
			})
		})
	}
}

func listens(s *process.Server) bool {
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.URL, "http://"))
	if err != nil {
		return false
	}
	_ = conn.Close()
	return true
}

func send(t *testing.T, w *wire, text string) {
	t.Helper()
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
}

// A command that is interrupted reports that and exits with 130.
func TestAnInterruptedCommandExitsWith130(t *testing.T) {
	t.Parallel()
	arrived := make(chan struct{}, 1)
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusCreated)
		arrived <- struct{}{}
	}))
	defer front.Close()
	file := filepath.Join(t.TempDir(), "belfry.yaml")
	if err := os.WriteFile(file, []byte(books), 0o600); err != nil {
		t.Fatal(err)
	}
	program := process.Program(t) // which may have to be built first
	ctx, cancel := context.WithTimeout(context.Background(), kit.Limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, "import", "Books", "-", "--config", file, "--url", front.URL)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := kit.Start(cmd); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(in, `{"uuid":"b1"}`+"\n"+`{"uuid":`); err != nil {
		t.Fatal(err)
	}
	select {
	case <-arrived: // now the command waits for the rest of its input
	case <-ctx.Done():
		t.Fatal("the import does not begin")
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 130 {
		t.Fatalf("ended with %v, want exit code 130\n%s", err, stderr.String())
	}
	if !strings.Contains(stderr.String(), "interrupted") {
		t.Errorf("its message is %q", stderr.String())
	}
}

// The end of the program that reads what belfry prints, as tee, is not that of belfry: it serves on, and reads its
// configuration again, here by a path that is relative and with its address from the environment.
func TestBelfryOutlivesItsReader(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	const text = "bus: {listen: \"\"}\nstores: {Books: {expose: {}, policy: {create: \"true\"}}}\n"
	write := func(text string) {
		if err := os.WriteFile(filepath.Join(folder, "belfry.yaml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(text)
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(process.Commands(t), "serve", "--config", "belfry.yaml")
	cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.Env = folder, in, in, append(os.Environ(), "BELFRY_LISTEN=127.0.0.1:0")
	if err := kit.Start(cmd); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	_ = in.Close()
	url := ""
	for lines := bufio.NewScanner(out); url == "" || !strings.Contains(lines.Text(), "msg=ready"); {
		if !lines.Scan() {
			t.Fatal("it does not serve")
		}
		if _, address, ok := strings.Cut(lines.Text(), "  HTTP    "); ok {
			url = address
		}
	}
	_ = out.Close() // what is printed from now on nobody reads
	create := func() int {
		res, err := http.Post(url+"/books", "application/json", strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		return res.StatusCode
	}
	if status := create(); status != http.StatusCreated {
		t.Fatal(status)
	}
	write(strings.Replace(text, `"true"`, `"false"`, 1))
	if err := cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	kit.WaitFor(t, "the reload", func() bool { return create() == http.StatusUnauthorized })
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}
