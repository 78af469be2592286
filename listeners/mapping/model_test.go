package mapping_test

import (
	"context"
	"maps"
	"slices"
	"testing"

	"belfry/listeners/cascade"
	"belfry/listeners/copies"
	"belfry/listeners/mapping"
	"belfry/pkg/event"
	protocol "belfry/pkg/mapping"
	"belfry/pkg/store"
	"belfry/test/model"
)

// workers are the built-in listeners.
func workers(set *store.Set) []model.Consumer {
	mapper := mapping.NewWorker(set, mapping.Options{})
	all := []model.Consumer{{Name: "mapping", Filters: mapping.Filters(set), Handle: mapper.HandleSerially}}
	if filters := cascade.Filters(set); len(filters) > 0 {
		// A worker for each event: two events of one would wait for its slots, which is no step.
		handle := func(ctx context.Context, e *event.Envelope) error {
			return cascade.NewWorker(set, cascade.Options{Concurrency: 1}).Handle(ctx, e)
		}
		all = append(all, model.Consumer{Name: "cascade", Filters: filters, Handle: handle})
	}
	if filters := copies.Filters(copiesOf(set)); len(filters) > 0 {
		over := &model.Over{}
		copier := copies.NewWorker(set, copies.Options{
			CopierOptions: protocol.CopierOptions{
				Concurrency: 1, Page: 1, Most: func(context.Context) int { return 1 },
			},
			HandOver: over.To,
		})
		all = append(all, model.Consumer{Name: "copy", Filters: filters, Handle: copier.HandleSerially, Over: over})
	}
	return all
}

// copiesOf returns the copies in the stores of a set.
func copiesOf(set *store.Set) (all []*store.Copies) {
	for _, name := range slices.Sorted(maps.Keys(set.Stores())) {
		all = append(all, store.CopiesOf([]store.Options{{Name: name, Copies: set.Store(name).Copies()}})...)
	}
	return all
}

func newChecker(t *testing.T, s model.Scenario) *model.Checker {
	t.Helper()
	return newCheckerOf(t, s, workers)
}

func newCheckerOf(t *testing.T, s model.Scenario, workers func(*store.Set) []model.Consumer) *model.Checker {
	t.Helper()
	s.Mappings = slices.Clone(s.Mappings)
	for i := range s.Mappings {
		if s.Mappings[i].Limit == 0 {
			s.Mappings[i].Limit = 100
		}
	}
	c, err := model.New(t.Context(), s, workers, checkInvariant)
	if err != nil {
		t.Fatal(err)
	}
	c.OnApplied = checkApplied
	if s.Clock {
		c.OnWrite = checkDeletion(s.Mappings)
	}
	return c
}

// explore visits all states of a scenario.
func explore(t *testing.T, s model.Scenario) {
	t.Helper()
	exploreAll(t, newChecker(t, s))
}

func exploreAll(t *testing.T, c *model.Checker) {
	t.Helper()
	const tooMany = 50_000_000
	stats, err := c.Explore(t.Context(), tooMany)
	if err != nil {
		t.Fatal(err)
	}
	if !stats.Complete || stats.Quiescent < 2 {
		t.Fatalf("not explored: %v", stats)
	}
	t.Log(stats)
}
