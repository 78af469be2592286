package mapping_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"belfry/listeners/mapping"
	"belfry/listeners/rounds"
	"belfry/pkg/event"
	protocol "belfry/pkg/mapping"
	encoded "belfry/pkg/object"
	"belfry/pkg/store"
)

// largeHarness is a harness whose target is large, and known to be so. Nobody else has a turn until the returned one
// ends.
func largeHarness(t *testing.T) (h *harness, later []*event.Envelope, turn *protocol.Turn) {
	t.Helper()
	h = newHarness(t, false)
	text := []byte(`"` + strings.Repeat("x", 100<<10) + `"`)
	if _, err := h.set.Store("Authors").Update(t.Context(), encoded.Object{"text": text},
		store.UpdateOptions{UUID: "a"}); err != nil {
		t.Fatal(err)
	}
	pace := protocol.NewPace(150 << 10)
	h.worker = mapping.NewWorker(h.set, mapping.Options{Pace: pace})
	events := h.saves(20)
	h.handle(events[0])
	turn, err := protocol.NewReconciler(h.set, protocol.Options{Pace: pace}).Begin(t.Context(), &h.set.Mappings()[0],
		"a")
	if err != nil {
		t.Fatal(err)
	}
	h.writes.Store(0)
	return h, events[1:], turn
}

// Events that arrive while a large array waits for its turn are applied by the write that it then has.
func TestEventsThatArriveBeforeATurnShareItsWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, events, turn := largeHarness(t)
		defer h.worker.Close()
		handled := h.handleAll(t.Context(), events)
		synctest.Wait()
		if n := h.worker.Waiting(rounds.Key{Mapping: &h.set.Mappings()[0], Target: "a"}); n != len(events) {
			t.Errorf("%d events wait for the next write, want %d", n, len(events))
		}
		turn.End()
		for _, err := range handled() {
			if err != nil {
				t.Fatal(err)
			}
		}
		if n := h.writes.Load(); n != 1 {
			t.Errorf("%d writes, want one for all events that waited", n)
		}
		if n := h.entries(); n != len(events)+1 {
			t.Errorf("%d entries, want %d", n, len(events)+1)
		}
	})
}

// A worker that stops does not wait for turns.
func TestCloseEndsTheWaitForATurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, events, turn := largeHarness(t)
		defer turn.End()
		handled := h.handleAll(t.Context(), events[:1])
		synctest.Wait()
		h.worker.Close()
		if err := handled()[0]; err == nil {
			t.Error("an event was handled although its write had no turn")
		}
	})
}
