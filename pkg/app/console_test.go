package app

import (
	"strings"
	"testing"

	"belfry/pkg/errs"
	"belfry/test/kit"
)

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
		"history": func() error {
			_, err := a.console().Objects.History(t.Context(), "Books", "emma", 0, 10)
			return err
		},
	} {
		// What is asked in vain says that nobody replied, after seconds. Why there is no connection changes with each
		// try to connect.
		if err := ask(); errs.KindOf(err) != errs.Unavailable ||
			!strings.HasPrefix(err.Error(), "the bus is unavailable: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
