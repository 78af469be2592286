package aggregate_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"belfry/pkg/event"
	"belfry/pkg/store"
	"belfry/pkg/store/driver"
	"belfry/test/model"
)

const records = "Recipes.aggregates"

// faultyScenarios lack a step of the protocol, or break a condition of it.
func faultyScenarios() map[string]model.Scenario {
	of := func(name string, fault model.Fault) model.Scenario {
		s := smallScenarios()[name]
		s.Fault = fault
		return s
	}
	unconditional := func(table string, isOf func(uuid string) bool) model.Fault {
		return model.Fault{Unconditional: func(name, uuid string) bool { return name == table && isOf(uuid) }}
	}
	isContribution := func(uuid string) bool { return strings.Contains(uuid, "-") }
	noOps := of(deletedAgain, model.Fault{RewritePut: func(w *driver.Write) {
		if at := bytes.Index(w.Body, []byte(`,"ops":`)); at >= 0 {
			w.Body = append(bytes.Clone(w.Body[:at]), '}')
		}
	}})
	noOps.Crash, noOps.MaxCrashes = true, 1
	ackByOther := of(reverted, model.Fault{AckByOther: true})
	ackByOther.Crash, ackByOther.MaxCrashes = true, 1
	return map[string]model.Scenario{
		"the changes that an accumulator has counted are not recorded": noOps,
		"an accumulator is written although it has changed": of(twoSources,
			unconditional(records, func(uuid string) bool { return !isContribution(uuid) })),
		"a contribution is written from another revision": of(deletedAgain, unconditional(records, isContribution)),
		"objects are not read again after a write":        of(reverted, model.Fault{NoRecheck: true}),
		"revisions repeat": of(deletedAgain, model.Fault{DropTombstones: true}),
		"a target created after its sources is not filled": of(created,
			model.Fault{DropEvent: func(e *event.Envelope) bool { return e.Store == "Recipes" }}),
		"nobody is notified of a new owner": of(ownerChanges, model.Fault{DropEvent: func(e *event.Envelope) bool {
			return e.Store == "Recipes" && e.Event == event.StoreUpdated
		}}),
		"one of two handlers of an event acknowledges it for both": ackByOther,
	}
}

// Each step and condition of the protocol is necessary: without it the model finds an interleaving after which
// aggregates and objects differ.
func TestModelFindsFaultsOfAggregates(t *testing.T) {
	for name, s := range faultyScenarios() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s.MaxInFlight = 2
			findFault(t, s, workers)
		})
	}
	for name, s := range awaitedScenarios() {
		t.Run(name+", without fences", func(t *testing.T) {
			t.Parallel()
			s.MaxInFlight, s.Fault.NoFence = 2, true
			findFault(t, s, workers)
		})
	}
}

// findFault explores a scenario of which some states violate the invariant.
func findFault(t *testing.T, s model.Scenario, workers func(*store.Set) []model.Consumer) {
	t.Helper()
	stats, err := newChecker(t, s, workers).Explore(t.Context(), 1_000_000)
	var v *model.Violation
	if !errors.As(err, &v) || errors.Is(err, model.ErrNoTermination) {
		t.Fatalf("the fault was not found: %v, %v", stats, err)
	}
	t.Logf("found after %v: %v", stats, v.Err)
}
