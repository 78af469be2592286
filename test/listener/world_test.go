package listener

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"belfry/pkg/bus"
	"belfry/pkg/event"
	"belfry/pkg/listener"
	"belfry/test/kit"
)

// world is a bus, and the file in which its listeners note what they see.
type world struct {
	t    *testing.T
	bus  *bus.Bus
	file string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	b, err := bus.Open(t.Context(), bus.Options{
		Embedded: &bus.Embedded{Folder: t.TempDir(), Listen: "127.0.0.1:0"}, Logger: slog.New(slog.DiscardHandler),
		Auth: bus.Auth{User: "ringer", Password: "secret"}, Events: bus.Limits{MaxMessages: 123_456},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close(context.Background()) })
	return &world{t: t, bus: b, file: filepath.Join(t.TempDir(), "seen")}
}

// publish puts an event into the log.
func (w *world) publish(all ...event.Envelope) {
	w.t.Helper()
	list := make([]bus.Event, len(all))
	for i, e := range all {
		e.Event, e.Store = event.StoreUpdated, "Books"
		list[i] = bus.Event{ID: e.ID, Subject: event.Subject(e.Event, e.Store, e.UUID), Payload: e.Append(nil)}
	}
	if err := w.bus.Publish(w.t.Context(), list); err != nil {
		w.t.Fatal(err)
	}
}

// numbered are events <prefix>-0, <prefix>-1, ... of so many objects in turn,
// the revisions of each rising.
func numbered(prefix string, n, objects int) []event.Envelope {
	all := make([]event.Envelope, n)
	for i := range all {
		all[i] = event.Envelope{ID: fmt.Sprintf("%s-%d", prefix, i), UUID: fmt.Sprintf("%s.%d", prefix, i%objects), Revision: uint64(i + 1)}
	}
	return all
}

// child is a listener in a process of its own.
type child struct {
	cmd    *exec.Cmd
	stderr log
	done   chan struct{}
}

// start starts a child; env is added to its environment.
func (w *world) start(role string, env ...string) *child {
	w.t.Helper()
	c := &child{cmd: exec.Command(os.Args[0]), done: make(chan struct{})}
	c.cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=10", envRole+"="+role, envFile+"="+w.file,
		listener.EnvURL+"="+w.bus.ClientURL(), listener.EnvUser+"=ringer", listener.EnvPassword+"=secret")
	c.cmd.Env = append(c.cmd.Env, env...)
	c.cmd.Stderr = &c.stderr
	if err := kit.Start(c.cmd); err != nil {
		w.t.Fatal(err)
	}
	go func() {
		_ = c.cmd.Wait()
		close(c.done)
	}()
	w.t.Cleanup(c.kill)
	return c
}

// kill ends the process as a power cut would.
func (c *child) kill() {
	_ = c.cmd.Process.Kill()
	<-c.done
}

// exit waits for the end of the process and returns its exit code.
func (c *child) exit() int {
	<-c.done
	return c.cmd.ProcessState.ExitCode()
}

func (c *child) ended() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// log is what a process says; it can be read while it is written.
type log struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// seen are the lines that listeners have noted: id, uuid and revision.
func (w *world) seen() []string {
	w.t.Helper()
	data, err := os.ReadFile(w.file)
	if errors.Is(err, os.ErrNotExist) || len(data) == 0 && err == nil {
		return nil
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
}

// distinct counts the ids that were seen.
func (w *world) distinct() int {
	ids := map[string]bool{}
	for _, line := range w.seen() {
		id, _, _ := strings.Cut(line, " ")
		ids[id] = true
	}
	delete(ids, "")
	return len(ids)
}

func (w *world) eventually(what string, right func() bool) {
	w.t.Helper()
	for deadline := time.Now().Add(100 * time.Second); !right(); {
		if time.Now().After(deadline) {
			w.t.Fatalf("not so after 100 s: %s", what)
		}
		<-time.After(10 * time.Millisecond)
	}
}

// idle reports whether the listener has acknowledged all.
func (w *world) idle() bool {
	pending, unacked, err := listener.Lag(w.t.Context(), w.bus, "child")
	return err == nil && pending+unacked == 0
}

// dead are the ids of the events with the dead letters.
func (w *world) dead() []string {
	w.t.Helper()
	stream, err := w.bus.JetStream().Stream(w.t.Context(), bus.StreamDead)
	if err != nil {
		w.t.Fatal(err)
	}
	var ids []string
	for seq := uint64(1); seq <= stream.CachedInfo().State.LastSeq; seq++ {
		var m *jetstream.RawStreamMsg
		if m, err = stream.GetMsg(w.t.Context(), seq); err != nil {
			w.t.Fatal(err)
		}
		e, err := event.Decode(m.Data)
		if err != nil {
			w.t.Fatal(err)
		}
		ids = append(ids, e.ID)
	}
	return ids
}
