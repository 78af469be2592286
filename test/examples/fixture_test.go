package examples

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"belfry/pkg/bus"
	"belfry/pkg/listener"
	"belfry/test/kit"
	"belfry/test/kit/gotest"
	"belfry/test/process"
)

// patience is longer than the ack wait of the events of a killed process.
const patience = 2 * time.Minute

// fixture is a belfry with its listeners.
type fixture struct {
	t      *testing.T
	belfry *process.Server
	bus    *bus.Bus
	admin  []string // flags of commands by which they are the admin of the bus
}

// newFixture starts a belfry with a configuration and the files next to it; files
// alternates names and contents.
func newFixture(t *testing.T, config string, files ...string) *fixture {
	t.Helper()
	t.Parallel()
	w := &fixture{t: t}
	w.serve(t.TempDir(), "bus: {listen: 127.0.0.1:0}\n"+config, bus.Auth{}, files...)
	return w
}

// serve starts belfry with files in a folder. auth is the admin of the bus.
func (w *fixture) serve(folder, config string, auth bus.Auth, files ...string) {
	t := w.t
	t.Helper()
	files = append(files, "belfry.yaml", config)
	for i := 0; i < len(files); i += 2 {
		w.check(os.WriteFile(filepath.Join(folder, files[i]), []byte(files[i+1]), 0o600))
	}
	w.belfry = process.ServePlain(t, filepath.Join(folder, "belfry.yaml"), "--listen", "127.0.0.1:0")
	var err error
	w.bus, err = bus.Open(t.Context(),
		bus.Options{URL: w.belfry.Bus, Unmanaged: true, Auth: auth, Logger: slog.New(slog.DiscardHandler)})
	w.check(err)
	t.Cleanup(func() { _ = w.bus.Close(context.Background()) })
}

func (w *fixture) check(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// eventually waits until right returns nil.
func (w *fixture) eventually(right func() error) {
	w.t.Helper()
	process.Eventually(w.t, patience, right)
}

// idle waits until a listener has acknowledged all events, including those that
// belfry has yet to publish.
func (w *fixture) idle(name string) {
	w.t.Helper()
	w.check(w.belfry.Idle())
	w.eventually(func() error {
		pending, unacked, err := listener.Lag(w.t.Context(), w.bus, name)
		if err == nil && pending+unacked > 0 {
			err = fmt.Errorf("%d events are pending for %s, and %d are unacknowledged", pending, name, unacked)
		}
		return err
	})
}

// request sends a request, which must succeed, and returns the response.
func (w *fixture) request(method, path string, body []byte, header ...string) (http.Header, []byte) {
	w.t.Helper()
	req, err := http.NewRequestWithContext(w.t.Context(), method, w.belfry.URL+path, bytes.NewReader(body))
	w.check(err)
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	w.check(err)
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	w.check(err)
	if res.StatusCode > 299 {
		w.t.Fatalf("%s %s: %s\n%s", method, path, res.Status, answer)
	}
	return res.Header, answer
}

// object gets an object.
func object[T any](w *fixture, path string, header ...string) T {
	w.t.Helper()
	_, body := w.request(http.MethodGet, path, nil, header...)
	var o T
	w.check(json.Unmarshal(body, &o))
	return o
}

const jsonType = "application/json"

// save creates an object.
func (w *fixture) save(path, body string) {
	w.t.Helper()
	w.request(http.MethodPost, path, []byte(body), "Content-Type", jsonType)
}

// run runs a belfry command and returns its output.
func (w *fixture) run(args ...string) string {
	w.t.Helper()
	out, errOut, exit, err := process.Run(process.Commands(w.t),
		append(append(args, w.admin...), "--url", w.belfry.Bus)...)
	if err != nil || exit != 0 {
		w.t.Fatalf("belfry %v: exit %d, %v\n%s", args, exit, err, errOut)
	}
	return out
}

// command runs a belfry command and decodes each line of its output.
func command[T any](w *fixture, args ...string) []T {
	w.t.Helper()
	out := w.run(args...)
	var all []T
	for lines := json.NewDecoder(strings.NewReader(out)); ; {
		var one T
		if err := lines.Decode(&one); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			w.t.Fatalf("belfry %v printed %v:\n%s", args, err, out)
		}
		all = append(all, one)
	}
}

type letter struct {
	UUID, Reason      string
	Attempts, Retries int
}

// letters returns the dead letters of a listener.
func (w *fixture) letters(name string) []letter {
	w.t.Helper()
	return command[letter](w, "dlq", "list", "--json", "--listener", name)
}

// child is a listener's program.
type child struct {
	t      *testing.T
	cmd    *exec.Cmd
	stderr *kit.Tail
	done   chan struct{}
}

// start starts a program. It is killed at the end of the test.
func (w *fixture) start(env []string, name string, args ...string) *child {
	w.t.Helper()
	c := &child{t: w.t, cmd: exec.Command(name, args...), stderr: &kit.Tail{Limit: 1 << 20}, done: make(chan struct{})}
	c.cmd.Env = append(os.Environ(), gotest.RaceOptions, listener.EnvURL+"="+w.belfry.Bus)
	c.cmd.Env = append(c.cmd.Env, env...)
	c.cmd.Stdout, c.cmd.Stderr = c.stderr, c.stderr
	w.check(kit.Start(c.cmd))
	go func() {
		_ = c.cmd.Wait()
		close(c.done)
	}()
	w.t.Cleanup(func() {
		c.kill()
		if said := c.stderr.String(); strings.Contains(said, "DATA RACE") || w.t.Failed() {
			w.t.Errorf("output of %s:\n%s", filepath.Base(name), said)
		}
	})
	return c
}

// kill ends the program as a power cut would.
func (c *child) kill() {
	_ = c.cmd.Process.Kill()
	<-c.done
}

// exit waits for the program to end and returns its exit code.
func (c *child) exit() int {
	<-c.done
	return c.cmd.ProcessState.ExitCode()
}

// stop sends SIGTERM, on which the program must exit with 0.
func (c *child) stop() {
	c.t.Helper()
	if err := c.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		c.t.Fatal(err)
	}
	if code := c.exit(); code != 0 {
		c.t.Errorf("%s exited with %d", c.cmd, code)
	}
}

// listens waits until the consumer of a listener exists.
func (w *fixture) listens(name string) {
	w.t.Helper()
	w.eventually(func() error {
		_, err := w.bus.JetStream().Consumer(w.t.Context(), bus.StreamEvents, name)
		return err
	})
}

// reset makes a listener start again at the beginning of the log.
func (w *fixture) reset(name string) {
	w.t.Helper()
	w.run("listener", "reset", name, "--from", "all")
}
