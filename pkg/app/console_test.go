package app

import (
	"strings"
	"testing"
	"time"

	"belfry/pkg/api/console"
	"belfry/pkg/errs"
	"belfry/pkg/listener/replay"
	"belfry/test/kit"
)

func TestTheStatesOfListenersAreKeptForAnHour(t *testing.T) {
	w := &consoleWorkers{samples: map[string][]console.Sample{}}
	now := time.Now()
	for i := range 300 {
		all := []*replay.Listener{{Name: "mapping", Lag: uint64(i), Unacked: -1}}
		if i < 10 {
			all = append(all, &replay.Listener{Name: "gone"})
		}
		w.add(now.Add(time.Duration(i)*sampleInterval), all)
	}
	got := w.History("mapping")
	if len(got) != 241 || got[0].Lag != 59 || got[240].Lag != 299 || got[0].Unacked != 0 {
		t.Errorf("%d samples, from %+v", len(got), got[0])
	}
	if w.History("gone") != nil {
		t.Error("a listener without samples is remembered")
	}
	many := make([]*replay.Listener, 1000)
	for i := range many {
		many[i] = &replay.Listener{Name: string(rune('a' + i))}
	}
	w.add(now.Add(time.Hour), many)
	if len(w.samples) > maxSampled+1 {
		t.Errorf("%d listeners are remembered", len(w.samples))
	}
}

// Nothing waits for a bus that is known to be unavailable: views show the rest, and say what is missing.
func TestTheConsoleDoesNotWaitForABusThatIsUnavailable(t *testing.T) {
	a := newPlace(t, books).start()
	w := a.console().Workers
	if _, err := w.Listeners(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := a.Bus().StopServer(); err != nil {
		t.Fatal(err)
	}
	kit.WaitFor(t, "the end of the connection", func() bool { return a.Bus().Connected() != nil })
	for name, ask := range map[string]func() error{
		"listeners": func() error { _, err := w.Listeners(t.Context()); return err },
		"lag":       func() error { _, err := a.console().Graph.Lag(t.Context()); return err },
		"letters":   func() error { _, _, err := w.Letters(t.Context(), "", 0, 10); return err },
		"letter":    func() error { _, err := w.Letter(t.Context(), 1); return err },
		"retry":     func() error { return w.Retry(t.Context(), 1) },
		"drop":      func() error { return w.Drop(t.Context(), 1) },
		"reset":     func() error { _, err := w.Reset(t.Context(), "mapping", "all"); return err },
		"history":   func() error { _, err := a.console().Objects.History(t.Context(), "Books", "emma", 0, 10); return err },
	} {
		// What is asked in vain says that nobody replied, after seconds. Why there is no connection changes with each try to connect.
		if err := ask(); errs.KindOf(err) != errs.Unavailable || !strings.HasPrefix(err.Error(), "the bus is unavailable: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
