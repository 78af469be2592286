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
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"belfry/pkg/bus"
	"belfry/pkg/bus/embedded"
	"belfry/pkg/event"
	"belfry/pkg/listener"
	"belfry/test/kit"
	"belfry/test/kit/gotest"
	"belfry/test/kit/natsserver"
)

// fixture is a bus, and the file in which its listeners record what they receive.
type fixture struct {
	t    *testing.T
	bus  *bus.Bus
	file string

	children []*child
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	b, err := bus.Open(t.Context(), bus.Options{
		Server: embedded.New(embedded.Options{Folder: t.TempDir(), Listen: "127.0.0.1:0"}),
		Logger: slog.New(slog.DiscardHandler),
		Auth:   bus.Auth{User: "ringer", Password: "secret"}, Events: bus.Limits{MaxMessages: 123_456},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close(context.Background()) })
	return &fixture{t: t, bus: b, file: filepath.Join(t.TempDir(), "seen")}
}

// publish puts an event into the log.
func (w *fixture) publish(all ...event.Envelope) {
	w.t.Helper()
	list := make([]bus.Event, len(all))
	for i, e := range all {
		e.Event, e.Store = event.StoreUpdated, "Books"
		list[i] = bus.Event{ID: e.ID, Subject: event.Subject(e.Event, e.Store, e.UUID), Payload: e.Append(nil)}
	}
	natsserver.Publish(w.t, w.bus, list...)
}

// numbered are events <prefix>-0, <prefix>-1, ... of so many objects in turn,
// the revisions of each rising.
func numbered(prefix string, n, objects int) []event.Envelope {
	all := make([]event.Envelope, n)
	for i := range all {
		all[i] = event.Envelope{ID: fmt.Sprintf("%s-%d", prefix, i), UUID: fmt.Sprintf("%s.%d", prefix, i%objects),
			Revision: uint64(i + 1)}
	}
	return all
}

// child is a listener in another process.
type child struct {
	cmd    *exec.Cmd
	stderr kit.Tail
	done   chan struct{}
}

// start starts a child; env is added to its environment.
func (w *fixture) start(role string, env ...string) *child {
	w.t.Helper()
	c := &child{cmd: exec.Command(os.Args[0]), done: make(chan struct{})}
	c.cmd.Env = append(os.Environ(), gotest.RaceOptions, envRole+"="+role, envFile+"="+w.file,
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
	w.children = append(w.children, c)
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

// received are the lines that listeners have recorded: id, uuid and revision.
func (w *fixture) received() []string {
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

// distinct counts the ids that were received.
func (w *fixture) distinct() int {
	ids := map[string]bool{}
	for _, line := range w.received() {
		id, _, _ := strings.Cut(line, " ")
		ids[id] = true
	}
	delete(ids, "")
	return len(ids)
}

func (w *fixture) eventually(what string, condition func() bool) {
	w.t.Helper()
	if err := kit.Await(2*time.Minute, func() error {
		if condition() {
			return nil
		}
		return errors.New(what)
	}); err != nil {
		w.t.Fatalf("%v\n%s", err, w.state())
	}
}

// state says what the listener has handled, and what its consumers and its processes are doing. It ends the processes.
func (w *fixture) state() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d events are handled\n", w.distinct())
	for _, name := range []string{bus.StreamEvents, bus.StreamRetry} {
		stream, err := w.bus.JetStream().Stream(w.t.Context(), name)
		if err != nil {
			fmt.Fprintln(&b, name, err)
			continue
		}
		for c := range stream.ListConsumers(w.t.Context()).Info() {
			fmt.Fprintf(&b,
				"%s.%s: delivered %d, acknowledged %d, pending %d, unacknowledged %d, redelivered %d, requests %d\n",
				name, c.Name, c.Delivered.Stream, c.AckFloor.Stream, c.NumPending, c.NumAckPending, c.NumRedelivered,
				c.NumWaiting)
		}
	}
	for i, c := range w.children {
		if !c.ended() {
			_ = c.cmd.Process.Signal(syscall.SIGQUIT) // it prints its goroutines
			fmt.Fprintf(&b, "process %d ends with %d:\n%s\n", i, c.exit(), c.stderr.String())
		}
	}
	return b.String()
}

// idle reports whether the listener has acknowledged all events.
func (w *fixture) idle() bool {
	pending, unacked, err := listener.Lag(w.t.Context(), w.bus, "child")
	return err == nil && pending+unacked == 0
}

// dead returns the ids of the dead letters.
func (w *fixture) dead() []string {
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
