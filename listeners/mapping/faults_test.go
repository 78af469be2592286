package mapping_test

import (
	"bytes"
	"errors"
	"testing"

	"belfry/pkg/event"
	"belfry/pkg/store/driver"
	encoded "belfry/pkg/store/object"
	"belfry/test/model"
)

// faulty are worlds in which the protocol lacks a part, or a condition of it
// does not hold.
func faulty() map[string]model.Scenario {
	blind := small()["two sources of one target"]
	blind.Fault.NoRecheck = true

	again := crowded()["a target is created again while others change"]
	again.Fault.DropTombstones = true

	late := small()["a source comes before its target"]
	late.Fault.DropEvent = func(e *event.Envelope) bool { return e.Store == "Authors" }

	crowd := crowded()["an array without room"]
	unnoted := crowd
	crowd.Clients = [][]model.Op{with(crowd.Clients[0], model.Save("Books", "z", `{"author":"a"}`))}
	unmarked, early := crowd, crowd
	unmarked.Fault.RewritePut = unmark
	early.Fault.RewritePut = func(w *driver.Write) {
		if bytes.Contains(w.Body, []byte(`"books":[]`)) {
			unmark(w)
		}
	}
	unnoted.Crash = true
	unnoted.Fault.RewritePut = func(w *driver.Write) {
		if o, err := encoded.Decode(w.Body); err == nil && o["_overflow"] != nil {
			o["_overflow"] = []byte(`{"books":[]}`)
			w.Body = o.Encode()
		}
	}

	shadow := small()["two sources of one target"]
	shadow.Crash, shadow.Fault.AckByOther = true, true

	return map[string]model.Scenario{
		"objects are not read again after a write":              blind,
		"revisions repeat when an object is created again":      again,
		"a target that comes late is not filled":                late,
		"an array without room is not marked":                   unmarked,
		"the mark goes with the removal that makes room":        early,
		"what is refilled is not noted":                         unnoted,
		"one of two that have an event in hand acknowledges it": shadow,
	}
}

// What the protocol consists of is needed: without any part of it arrays and
// objects come to differ, and the model finds how.
func TestFaultsAreFound(t *testing.T) {
	for name, w := range faulty() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w.MaxInFlight = 2
			stats, err := checker(t, w).Explore(t.Context(), 300_000)
			var v *model.Violation
			if !errors.As(err, &v) || errors.Is(err, model.ErrNoTermination) {
				t.Fatalf("the fault was not found: %v, %v", stats, err)
			}
			t.Logf("found after %v: %v", stats, v.Err)
		})
	}
}

func unmark(w *driver.Write) {
	if o, err := encoded.Decode(w.Body); err == nil && o["_overflow"] != nil {
		delete(o, "_overflow")
		w.Body = o.Encode()
	}
}
