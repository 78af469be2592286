package aggregate_test

import (
	"context"
	"testing"

	"belfry/listeners/aggregate"
	"belfry/listeners/rounds"
	"belfry/pkg/event"
	"belfry/pkg/store"
	"belfry/test/kit"
	"belfry/test/model"
)

// sharingScenarios are those in which other workers run the rounds of a worker's events. That has them many more
// states.
func sharingScenarios() map[string]model.Scenario {
	x := model.Save("Ratings", "x", `{"recipe":"a","stars":1}`)
	scenario := func(setup []model.Op, clients ...[]model.Op) model.Scenario {
		return model.Scenario{Mappings: ratings(), Setup: setup, AtomicClients: true, Clients: clients}
	}
	a := []model.Op{model.Save("Recipes", "a", `{}`)}
	return map[string]model.Scenario{
		"a source is changed": scenario(join(a, x), []model.Op{model.Update("Ratings", "x", `{"stars":2}`)}),
		"a source is deleted": scenario(join(a, x), []model.Op{model.Delete("Ratings", "x")}),
		twoSources: scenario(a,
			[]model.Op{x}, []model.Op{model.Save("Ratings", "y", `{"recipe":"a","stars":2}`)}),
	}
}

// sharing is a worker of which others are asked for rounds that have a conflict; with always for all.
func sharing(always bool, ask func(ctx context.Context, target string,
	round func(context.Context) error) rounds.Waiter) func(set *store.Set) []model.Consumer {
	return func(set *store.Set) []model.Consumer {
		w := aggregate.NewWorker(set, aggregate.Options{})
		handle := func(ctx context.Context, e *event.Envelope) error { return w.HandleAsking(ctx, e, always, ask) }
		return []model.Consumer{{Name: "aggregate", Filters: aggregate.Filters(set), Handle: handle}}
	}
}

func asking(ctx context.Context, target string, round func(context.Context) error) rounds.Waiter {
	return model.Ask(ctx, target, round)
}

// Workers run rounds for each other, requests and replies are lost, and workers give up waiting: aggregates match
// objects when nothing is left to do. A soak run has two sources, which make conflicts.
func TestAggregatesConvergeWhenWorkersRunRoundsOfOthers(t *testing.T) {
	for name, s := range sharingScenarios() {
		if name == twoSources && !kit.Soak(t, 1).Long() {
			continue // it has 65 times the states of the others
		}
		for what, always := range map[string]bool{"all": true, "those with a conflict": false} {
			t.Run(name+", "+what, func(t *testing.T) {
				t.Parallel()
				limited := s // the scenario is that of two tests
				limited.MaxInFlight = 2
				explore(t, limited, sharing(always, asking))
			})
		}
	}
}

// hasty acknowledges an event once another worker was asked for its round.
type hasty struct{ *model.Asked }

func (h hasty) Wait(context.Context) error { return h.Sent() }

// A worker that does not wait for the reply, or takes a missing one for success, loses events.
func TestModelFindsEventsThatAreAcknowledgedBeforeTheirRounds(t *testing.T) {
	s := sharingScenarios()["a source is changed"]
	s.MaxInFlight = 2
	findFault(t, s, sharing(true, func(ctx context.Context, target string,
		round func(context.Context) error) rounds.Waiter {
		return hasty{model.Ask(ctx, target, round)}
	}))
}
