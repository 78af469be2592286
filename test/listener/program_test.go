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

func TestAProgramFinishesWhatIsInHandAndEnds(t *testing.T) {
	const events = 100 // more than are handled before it hears that it should stop
	w := newWorld(t)
	w.publish(numbered("e", events, 10)...)
	c := w.start("slow")
	w.eventually("one is in hand", func() bool { return len(w.seen()) > 0 })
	if err := c.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := c.exit(); code != 0 {
		t.Errorf("it ended with %d:\n%s", code, c.stderr.String())
	}
	// Begun and finished: two lines each.
	if n := len(w.seen()); n%2 != 0 || n == 2*events {
		t.Errorf("%d lines: something was begun and not finished, or all was done before it ended", n)
	}
}

func TestAProgramThatCannotFinishFails(t *testing.T) {
	w := newWorld(t)
	w.publish(numbered("e", 1, 1)...)
	c := w.start("endless")
	w.eventually("it is in hand", func() bool { return len(w.seen()) > 0 })
	if err := c.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if code := c.exit(); code != 1 || !strings.Contains(c.stderr.String(), "still handles") {
		t.Errorf("it ended with %d:\n%s", code, c.stderr.String())
	}
}

func TestAProgramThatIsStoppedWhileTheBusIsAwayEnds(t *testing.T) {
	w := newWorld(t)
	c := w.start("plain", listener.EnvURL+"=nats://127.0.0.1:1")
	w.eventually("it says what it waits for", func() bool { return strings.Contains(c.stderr.String(), "waiting for the bus") })
	if err := c.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := c.exit(); code != 0 {
		t.Errorf("it ended with %d:\n%s", code, c.stderr.String())
	}
}

func TestProgramsThatCannotWork(t *testing.T) {
	w := newWorld(t)
	missing := filepath.Join(t.TempDir(), "missing")
	for name, env := range map[string][]string{
		"no password":     {listener.EnvPassword + "="},
		"two ways":        {listener.EnvToken + "=hunter2"},
		"no file":         {listener.EnvUser + "=", listener.EnvPassword + "=", listener.EnvCredentials + "=" + missing},
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
			if text := c.stderr.String(); text == "" || strings.Contains(text, "hunter2") || strings.Contains(text, "secret") {
				t.Errorf("it says %q", text)
			}
		})
	}
}

// junk is a file that holds nothing of use.
func (w *world) junk() string {
	w.t.Helper()
	path := filepath.Join(w.t.TempDir(), "junk")
	if err := os.WriteFile(path, []byte("hunter2\n"), 0o600); err != nil {
		w.t.Fatal(err)
	}
	return path
}

func TestAProgramLeavesTheStreamsAsTheyAre(t *testing.T) {
	w := newWorld(t)
	w.publish(numbered("e", 10, 10)...)
	before := w.streams()
	c := w.start("plain")
	w.eventually("all is handled", func() bool { return w.distinct() == 10 && w.idle() })
	c.kill()
	if after := w.streams(); after != before {
		t.Errorf("the streams were\n%s\nand are\n%s", before, after)
	}
}

func (w *world) streams() string {
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
