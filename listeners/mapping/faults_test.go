package mapping_test

import (
	"bytes"
	"errors"
	"testing"

	"belfry/pkg/event"
	encoded "belfry/pkg/object"
	"belfry/pkg/store"
	"belfry/pkg/store/driver"
	"belfry/test/model"
)

// faultyScenarios lack a step of the protocol, or break a condition of it.
func faultyScenarios() map[string]model.Scenario {
	noRecheck := smallScenarios()["two sources of one target"]
	noRecheck.Fault.NoRecheck = true

	repeated := largeScenarios()["a target is created again while others change"]
	repeated.Fault.DropTombstones = true

	noBackfill := smallScenarios()["a source is created before its target"]
	noBackfill.Fault.DropEvent = func(e *event.Envelope) bool { return e.Store == "Authors" }

	limit := smallScenarios()["an array at its limit"]
	noUnconfirmed := limit
	limit.Clients = [][]model.Op{join(limit.Clients[0], model.Save("Books", "z", `{"author":"a"}`))}
	noMark, earlyUnmark := limit, limit
	noMark.Fault.RewritePut = removeMark
	earlyUnmark.Fault.RewritePut = func(w *driver.Write) {
		if bytes.Contains(w.Body, []byte(`"books":[]`)) {
			removeMark(w)
		}
	}
	noUnconfirmed.Crash = true
	noUnconfirmed.Fault.RewritePut = func(w *driver.Write) {
		if o, err := encoded.Decode(w.Body); err == nil && o["_overflow"] != nil {
			o["_overflow"] = []byte(`{"books":[]}`)
			w.Body = o.Encode()
		}
	}

	ackByOther := smallScenarios()["two sources of one target"]
	ackByOther.Crash, ackByOther.Fault.AckByOther = true, true

	twoBackends := powerScenarios()["a change and a move, and power failures of two backends"]
	oneBackend := refilledAfterPowerFailure()
	for _, s := range []*model.Scenario{&twoBackends, &oneBackend} {
		s.Volatile, s.Fault.ShowVolatile = true, true
	}

	faulty := map[string]model.Scenario{
		"reads of two backends show what is not durable":           twoBackends,
		"reads of one backend show what is not durable":            oneBackend,
		"objects are not read again after a write":                 noRecheck,
		"revisions repeat in a new incarnation":                    repeated,
		"a target created after its sources is not backfilled":     noBackfill,
		"an array at its limit is not marked":                      noMark,
		"the removal that leaves the limit clears the mark":        earlyUnmark,
		"refilled entries are not recorded as unconfirmed":         noUnconfirmed,
		"one of two handlers of an event acknowledges it for both": ackByOther,
	}
	for name, s := range awaitedScenarios() {
		switch {
		case name == cascadeOfThree:
			s.Fault.LostReports = true
			faulty["a wait ends without the report of a worker that crashed"] = s
		case !isRightWithoutFence[name]:
			s.Fault.NoFence = true
			faulty["a target that is right already is not written: "+name] = s
		}
	}
	return faulty
}

// Each step and condition of the protocol is necessary: without it the model
// finds an interleaving after which arrays and objects differ.
func TestModelFindsFaults(t *testing.T) {
	for name, s := range faultyScenarios() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s.MaxInFlight = 2
			findFault(t, s, workers)
		})
	}
}

// findFault explores a scenario of which some states violate the invariant.
func findFault(t *testing.T, s model.Scenario, workers func(*store.Set) []model.Consumer) {
	t.Helper()
	stats, err := newCheckerOf(t, s, workers).Explore(t.Context(), 300_000)
	var v *model.Violation
	if !errors.As(err, &v) || errors.Is(err, model.ErrNoTermination) {
		t.Fatalf("the fault was not found: %v, %v", stats, err)
	}
	t.Logf("found after %v: %v", stats, v.Err)
}

func removeMark(w *driver.Write) {
	if o, err := encoded.Decode(w.Body); err == nil && o["_overflow"] != nil {
		delete(o, "_overflow")
		w.Body = o.Encode()
	}
}
