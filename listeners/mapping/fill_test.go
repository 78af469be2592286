package mapping_test

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"testing"

	"belfry/pkg/event"
	protocol "belfry/pkg/mapping"
	"belfry/pkg/store"
	"belfry/test/model"
)

// filling is a scenario of data from before a mapping was added or changed: x has no entry, and what is outdated are
// changes whose events no worker handles. Then an update of an author begins a fill of all arrays.
func filling(limit int, outdated []model.Op, clients ...[]model.Op) model.Scenario {
	s := model.Scenario{
		Mappings: books(cmp.Or(limit, 100)), MaxInFlight: 2, Crash: true, AtomicClients: true, MaxCrashes: 1,
		Setup: join(authors(),
			model.Save("Books", "y", `{"author":"a","title":"1"}`), model.Save("Books", "z", `{"author":"a"}`), model.Save("Books", "x", `{"author":"a"}`)),
		Clients: append(clients, join(outdated, model.Update("Authors", "a", `{"fill":true}`))),
	}
	s.Fault.DropEvent = func(e *event.Envelope) bool {
		return e.UUID == "x" && e.Event == event.StoreSaved || strings.Contains(string(e.Object), `"former":true`)
	}
	return s
}

// filler is a process that fills: if it crashes, the fill is repeated.
func filler(fill func(ctx context.Context, r *protocol.Reconciler, set *store.Set, target string) error) func(set *store.Set) []model.Consumer {
	return func(set *store.Set) []model.Consumer {
		r := protocol.NewReconciler(set, protocol.Options{})
		return append(workers(set), model.Consumer{
			Name: "fill", Filters: []string{event.Filter(event.StoreUpdated, "Authors")},
			Handle: func(ctx context.Context, _ *event.Envelope) error {
				for _, target := range []string{"a", "b"} {
					if err := fill(ctx, r, set, target); err != nil {
						return err
					}
				}
				return nil
			},
		})
	}
}

func fillAll(ctx context.Context, r *protocol.Reconciler, set *store.Set, target string) error {
	return r.Fill(ctx, &set.Mappings()[0], target, nil)
}

// filled checks the invariant once the fill has begun.
func filled(ctx context.Context, set *store.Set, histories model.Histories) error {
	a, err := set.Store("Authors").Get(ctx, "a")
	if err != nil || !strings.Contains(string(a.Body), `"fill":true`) {
		return err
	}
	return checkInvariant(ctx, set, histories)
}

func fillScenarios() map[string]model.Scenario {
	changed := model.Update("Books", "y", `{"title":"2","former":true}`)
	moved := model.Update("Books", "z", `{"author":"b","former":true}`)
	return map[string]model.Scenario{
		"an object without an entry changes":    filling(0, nil, []model.Op{model.Update("Books", "x", `{"title":"3"}`)}),
		"an object without an entry is deleted": filling(0, nil, []model.Op{model.Delete("Books", "x")}),
		movesBack:                               filling(0, []model.Op{moved}, []model.Op{model.Update("Books", "z", `{"author":"a","former":false}`)}),
		"an array at its limit is filled":       filling(1, []model.Op{changed, moved}, []model.Op{model.Update("Books", "y", `{"author":"b","former":false}`)}),
	}
}

const movesBack = "an object moves back"

func TestArraysConvergeWhileTheyAreFilled(t *testing.T) {
	for name, s := range fillScenarios() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, err := model.New(t.Context(), s, filler(fillAll), filled)
			if err != nil {
				t.Fatal(err)
			}
			exploreAll(t, c)
		})
	}
}

// Without the entries that an array has, or without reading the objects again, a fill leaves what is outdated.
func TestModelFindsFaultsOfFills(t *testing.T) {
	moves, unread := fillScenarios()[movesBack], fillScenarios()[movesBack]
	unread.Fault.NoRecheck = true
	for name, test := range map[string]struct {
		scenario model.Scenario
		fill     func(context.Context, *protocol.Reconciler, *store.Set, string) error
	}{
		"the entries of an array are not read": {moves, func(ctx context.Context, r *protocol.Reconciler, set *store.Set, target string) error {
			var linked []string
			for x, err := range set.Store("Books").Linked(ctx, "author", target, 100) {
				if err != nil {
					return err
				}
				linked = append(linked, x.UUID)
			}
			return r.Reconcile(ctx, &set.Mappings()[0], target, linked)
		}},
		"objects are not read again": {unread, fillAll},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, err := model.New(t.Context(), test.scenario, filler(test.fill), filled)
			if err != nil {
				t.Fatal(err)
			}
			stats, err := c.Explore(t.Context(), 300_000)
			var v *model.Violation
			if !errors.As(err, &v) || errors.Is(err, model.ErrNoTermination) {
				t.Fatalf("the fault was not found: %v, %v", stats, err)
			}
		})
	}
}
