package mapping_test

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"belfry/pkg/event"
	protocol "belfry/pkg/mapping"
	encoded "belfry/pkg/object"
	"belfry/pkg/store"
	"belfry/pkg/store/driver"
	"belfry/test/model"
)

// filling is a scenario of data from before a mapping was added or changed: x has no entry, and what is outdated are
// changes whose events no worker handles. Then an update of an author begins a fill of all arrays.
func filling(limit int, outdated []model.Op, clients ...[]model.Op) model.Scenario {
	s := model.Scenario{
		Mappings: books(cmp.Or(limit, 100)), MaxInFlight: 2, Crash: true, AtomicClients: true, MaxCrashes: 1,
		Setup: join(authors(),
			model.Save("Books", "y", `{"author":"a","title":"1"}`), model.Save("Books", "z", `{"author":"a"}`),
			model.Save("Books", "x", `{"author":"a"}`)),
		Clients: append(clients, join(outdated, model.Update("Authors", "a", `{"fill":true}`))),
	}
	s.Fault.DropEvent = func(e *event.Envelope) bool {
		return e.UUID == "x" && e.Event == event.StoreSaved || strings.Contains(string(e.Object), `"former":true`)
	}
	return s
}

// filler is a process that fills: if it crashes, the fill is repeated.
func filler(fill func(ctx context.Context, r *protocol.Reconciler, set *store.Set,
	target string) error) func(set *store.Set) []model.Consumer {
	return fillerOf([]string{"a", "b"}, fill)
}

// fillerOf is filler of some objects.
func fillerOf(uuids []string,
	fill func(ctx context.Context, r *protocol.Reconciler, set *store.Set,
		uuid string) error) func(set *store.Set) []model.Consumer {
	return func(set *store.Set) []model.Consumer {
		r := protocol.NewReconciler(set, protocol.Options{})
		return append(workers(set), model.Consumer{
			Name: "fill", Filters: []string{event.Filter(event.StoreUpdated, "Authors")},
			Handle: func(ctx context.Context, _ *event.Envelope) error {
				for _, uuid := range uuids {
					if err := fill(ctx, r, set, uuid); err != nil {
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
		"an object without an entry changes": filling(0, nil,
			[]model.Op{model.Update("Books", "x", `{"title":"3"}`)}),
		"an object without an entry is deleted": filling(0, nil, []model.Op{model.Delete("Books", "x")}),
		movesBack: filling(0, []model.Op{moved},
			[]model.Op{model.Update("Books", "z", `{"author":"a","former":false}`)}),
		"an array at its limit is filled": filling(1, []model.Op{changed, moved},
			[]model.Op{model.Update("Books", "y", `{"author":"b","former":false}`)}),
	}
}

// rekeying is a scenario of data from before keys that are numbers named anything: x is not in the index, and no worker
// has handled its event. Then an update of an author has it brought up to date.
func rekeying(author string, clients ...[]model.Op) model.Scenario {
	s := model.Scenario{
		Mappings: books(100), MaxInFlight: 2, Crash: true, AtomicClients: true, MaxCrashes: 1,
		Setup: []model.Op{
			model.Save("Authors", "1", `{}`), model.Save("Authors", "a", `{}`),
			model.Save("Books", "x", `{"author":`+author+`,"title":"1","former":true}`),
		},
		Clients: append(clients, []model.Op{model.Update("Authors", "a", `{"fill":true}`)}),
	}
	s.Fault.DropEvent = func(e *event.Envelope) bool { return e.Event == event.StoreSaved && e.Store == "Books" }
	s.Fault.RewritePut = func(w *driver.Write) {
		if w.Event.ID != "" && strings.Contains(string(w.Body), `"former":true`) {
			w.Keys = slices.DeleteFunc(slices.Clone(w.Keys),
				func(k driver.Key) bool { return string(k.Parts[0]) == "1" })
		}
	}
	return s
}

func rekeyScenarios() map[string]model.Scenario {
	return map[string]model.Scenario{
		"an object whose key is a number changes": rekeying(`1`,
			[]model.Op{model.Update("Books", "x", `{"title":"2","former":false}`)}),
		"an object whose key is a number moves": rekeying(`1`,
			[]model.Op{model.Update("Books", "x", `{"author":"a","former":false}`)}),
		"an object whose key is a number is deleted": rekeying(`1`, []model.Op{model.Delete("Books", "x")}),
		"what a number names is deleted, and created again": rekeying(`1`,
			[]model.Op{model.Delete("Authors", "1"), model.Save("Authors", "1", `{}`)}),
		"an object that names a number and others is in neither": rekeying(`[2,1]`,
			[]model.Op{model.Update("Books", "x", `{"author":[1.0,"a"],"former":false}`)}),
	}
}

// rekeyAll puts the book into the index, and then fills the array of the author that a number names.
func rekeyAll(ctx context.Context, r *protocol.Reconciler, set *store.Set, uuid string) error {
	if err := protocol.Reindex(ctx, set.Store("Books"), "x"); err != nil {
		return err
	}
	return fillAll(ctx, r, set, uuid)
}

func TestArraysConvergeWhileNumbersAreRead(t *testing.T) {
	for name, s := range rekeyScenarios() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, err := model.New(t.Context(), s, fillerOf([]string{"1"}, rekeyAll), filled)
			if err != nil {
				t.Fatal(err)
			}
			exploreAll(t, c)
		})
	}
}

// Without the keys in the index a fill does not find the objects; an object at a time, a crash leaves an entry of one
// that moves.
func TestModelFindsFaultsOfNumbersThatAreRead(t *testing.T) {
	for name, test := range map[string]struct {
		scenario string
		fill     func(context.Context, *protocol.Reconciler, *store.Set, string) error
	}{
		"objects are not indexed": {"what a number names is deleted, and created again", fillAll},
		"an object at a time": {"an object whose key is a number moves",
			func(ctx context.Context, r *protocol.Reconciler, set *store.Set, uuid string) error {
				if err := protocol.Reindex(ctx, set.Store("Books"), "x"); err != nil {
					return err
				}
				x, err := set.Store("Books").Get(store.WithCall(ctx, store.Call{Origin: event.OriginMapping}), "x")
				if err != nil || !slices.Contains(store.KeyTargets(encoded.Field(x.Body, "author")), uuid) {
					return err
				}
				return r.Reconcile(ctx, &set.Mappings()[0], uuid, []string{"x"})
			}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, err := model.New(t.Context(), rekeyScenarios()[test.scenario], fillerOf([]string{"1"}, test.fill),
				filled)
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
		"the entries of an array are not read": {moves,
			func(ctx context.Context, r *protocol.Reconciler, set *store.Set, target string) error {
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
