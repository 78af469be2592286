package listener

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"belfry/pkg/bus"
	"belfry/pkg/listener"
)

func TestAProgramFinishesEventsInFlightAndEnds(t *testing.T) {
	t.Parallel()
	const events = 100 // more than are handled before the signal arrives
	w := newFixture(t)
	w.publish(numbered("e", events, 10)...)
	c := w.start("slow")
	w.eventually("one is in flight", func() bool { return len(w.received()) > 0 })
	if err := c.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := c.exit(); code != 0 {
		t.Errorf("it ended with %d:\n%s", code, c.stderr.String())
	}
	// A handler that finishes has written two lines.
	if n := len(w.received()); n%2 != 0 || n == 2*events {
		t.Errorf("%d lines: a handler did not finish, or all events were handled", n)
	}
}

func TestAProgramThatCannotFinishFails(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.publish(numbered("e", 1, 1)...)
	c := w.start("endless")
	w.eventually("it is in flight", func() bool { return len(w.received()) > 0 })
	if err := c.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if code := c.exit(); code != 1 || !strings.Contains(c.stderr.String(), "still handles") {
		t.Errorf("it ended with %d:\n%s", code, c.stderr.String())
	}
}

func TestAProgramThatIsStoppedWhileTheBusIsUnavailableEnds(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	c := w.start("plain", listener.EnvURL+"=nats://127.0.0.1:1")
	w.eventually("it reports what it waits for",
		func() bool { return strings.Contains(c.stderr.String(), "waiting for the bus") })
	if err := c.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := c.exit(); code != 0 {
		t.Errorf("it ended with %d:\n%s", code, c.stderr.String())
	}
}

func TestProgramsWithUnusableSettingsFail(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	missing := filepath.Join(t.TempDir(), "missing")
	for name, env := range map[string][]string{
		"no password": {listener.EnvPassword + "="},
		"two methods": {listener.EnvToken + "=hunter2"},
		"no file": {listener.EnvUser + "=", listener.EnvPassword + "=",
			listener.EnvCredentials + "=" + missing},
		"no seed":         {listener.EnvUser + "=", listener.EnvPassword + "=", listener.EnvNKey + "=" + w.junk()},
		"no authority":    {listener.EnvCA + "=" + missing},
		"no address":      {listener.EnvURL + "=://hunter2"},
		"not even a spec": {envRole + "=impossible"},
	} {
		t.Run(name, func(t *testing.T) {
			c := w.start("plain", env...)
			if code := c.exit(); code != 2 {
				t.Errorf("it ended with %d:\n%s", code, c.stderr.String())
			}
			if text := c.stderr.String(); text == "" || strings.Contains(text, "hunter2") ||
				strings.Contains(text, "secret") {
				t.Errorf("its message is %q", text)
			}
		})
	}
}

// junk is a file without a credential.
func (w *fixture) junk() string {
	w.t.Helper()
	path := filepath.Join(w.t.TempDir(), "junk")
	if err := os.WriteFile(path, []byte("hunter2\n"), 0o600); err != nil {
		w.t.Fatal(err)
	}
	return path
}

func TestAProgramLeavesTheStreamsAsTheyAre(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.publish(numbered("e", 10, 10)...)
	before := w.streams()
	c := w.start("plain")
	w.eventually("all is handled", func() bool { return w.distinct() == 10 && w.idle() })
	c.kill()
	if after := w.streams(); after != before {
		t.Errorf("the streams were\n%s\nand are\n%s", before, after)
	}
}

func (w *fixture) streams() string {
	w.t.Helper()
	var all strings.Builder
	for _, name := range []string{bus.StreamEvents, bus.StreamDead} {
		s, err := w.bus.JetStream().Stream(w.t.Context(), name)
		if err != nil {
			w.t.Fatal(err)
		}
		fmt.Fprintf(&all, "%+v\n", s.CachedInfo().Config)
	}
	return all.String()
}
