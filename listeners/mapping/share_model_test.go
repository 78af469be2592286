package mapping_test

import (
	"context"
	"testing"

	"belfry/listeners/mapping"
	"belfry/pkg/event"
	"belfry/pkg/store"
	"belfry/test/kit"
	"belfry/test/model"
)

const (
	movingSource  = "a source moves"
	awaitedRevert = "a change is reverted, which a request waits for"
)

// sharingScenarios are those in which other workers run the rounds of a worker's events. That has them many more
// states.
func sharingScenarios() map[string]model.Scenario {
	x := model.Save("Books", "x", `{"author":"a","title":"1"}`)
	return map[string]model.Scenario{
		"a source is changed and deleted": {
			Mappings:      books(0),
			Setup:         join(authors(), x),
			AtomicClients: true,
			Clients:       [][]model.Op{{model.Update("Books", "x", `{"title":"2"}`), model.Delete("Books", "x")}},
		},
		"two sources of one target": {
			Mappings:      books(0),
			Setup:         authors(),
			AtomicClients: true,
			Clients:       [][]model.Op{{x}, {model.Save("Books", "y", `{"author":"a"}`)}},
		},
		movingSource: {
			Mappings:      books(0),
			Setup:         join(authors(), x),
			AtomicClients: true,
			Clients:       [][]model.Op{{model.Update("Books", "x", `{"author":"b"}`)}},
		},
		awaitedRevert: {
			Mappings:      books(0),
			Setup:         join(authors(), x),
			AtomicClients: true,
			Clients: [][]model.Op{{
				model.Update("Books", "x", `{"title":"2"}`), model.Await(model.Update("Books", "x", `{"title":"1"}`)),
			}},
		},
	}
}

// sharing is a worker of which others are asked for all rounds.
func sharing(ask func(ctx context.Context, target string,
	round func(context.Context) error) mapping.Waiter) func(set *store.Set) []model.Consumer {
	return func(set *store.Set) []model.Consumer {
		w := mapping.NewWorker(set, mapping.Options{})
		handle := func(ctx context.Context, e *event.Envelope) error { return w.HandleAsking(ctx, e, ask) }
		return []model.Consumer{{Name: "mapping", Filters: mapping.Filters(set), Handle: handle}}
	}
}

// sharingConflicts is a worker of which others are asked for rounds that have a conflict.
func sharingConflicts(ask func(ctx context.Context, target string,
	round func(context.Context) error) mapping.Waiter) func(set *store.Set) []model.Consumer {
	return func(set *store.Set) []model.Consumer {
		w := mapping.NewWorker(set, mapping.Options{})
		handle := func(ctx context.Context, e *event.Envelope) error {
			return w.HandleAskingAfterConflicts(ctx, e,
				ask)
		}
		return []model.Consumer{{Name: "mapping", Filters: mapping.Filters(set), Handle: handle}}
	}
}

func asking(ctx context.Context, target string, round func(context.Context) error) mapping.Waiter {
	return model.Ask(ctx, target, round)
}

// Workers run rounds for each other, requests and replies are lost, workers give up waiting, and in one scenario they
// crash between any two steps: arrays match objects when nothing is left to do.
func TestArraysConvergeWhenWorkersRunRoundsOfOthers(t *testing.T) {
	for name, s := range sharingScenarios() {
		if name == awaitedRevert {
			continue // it takes twice as long as the others together: make soak explores it
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s.MaxInFlight, s.Crash = 2, name == movingSource
			exploreAll(t, newCheckerOf(t, s, sharing(asking)))
		})
	}
}

// Workers leave rounds to others after a conflict.
func TestArraysConvergeWhenWorkersLeaveConflictsToOthers(t *testing.T) {
	for name, s := range sharingScenarios() {
		if name == awaitedRevert {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s.MaxInFlight, s.Crash = 2, name == movingSource
			exploreAll(t, newCheckerOf(t, s, sharingConflicts(asking)))
		})
	}
}

// A soak run has workers crash in all scenarios, and a request wait: what it has waited for is not undone.
func TestSoakRoundsOfOthersWithCrashes(t *testing.T) {
	if !kit.Soak(t, 1).Long() {
		return // the test above has the smallest of them
	}
	for name, s := range sharingScenarios() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s.MaxInFlight, s.Crash = 2, true
			if name == awaitedRevert {
				s.MaxCrashes = 1 // each attempt makes a write
			}
			exploreAll(t, newCheckerOf(t, s, sharing(asking)))
		})
	}
}

// hasty acknowledges an event once another worker was asked for its round.
type hasty struct{ *model.Asked }

func (h hasty) Wait(context.Context) error { return h.Sent() }

// A worker that does not wait for the reply, or takes a missing one for success, loses events.
func TestModelFindsEventsThatAreAcknowledgedBeforeTheirRounds(t *testing.T) {
	for name, s := range sharingScenarios() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s.MaxInFlight = 2
			findFault(t, s,
				sharing(func(ctx context.Context, target string, round func(context.Context) error) mapping.Waiter {
					return hasty{model.Ask(ctx, target, round)}
				}))
		})
	}
}
