package mapping_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"belfry/pkg/event"
	"belfry/pkg/store"
	"belfry/test/model"
)

// referring adds references of books to authors, which do something when an author is deleted.
func referring(s model.Scenario, onDelete string) model.Scenario {
	s.Clock, s.AtomicClients, s.MaxInFlight = true, true, 2
	s.Options = func(o *store.Options) {
		o.Arrays = slices.DeleteFunc(o.Arrays, func(name string) bool { return name == "" })
		if o.Name == "Books" {
			o.References = []store.Reference{{Field: "author", Target: "Authors", Indexed: true, OnDelete: onDelete}}
		}
	}
	return s
}

// referenceScenarios need the clock: what is written since an object was created again names that one.
func referenceScenarios() map[string]model.Scenario {
	all := map[string]model.Scenario{}
	add := func(name, onDelete string, mappings []store.Mapping, setup []model.Op, clients ...[]model.Op) {
		all[onDelete+": "+name] = referring(model.Scenario{Mappings: mappings, Setup: setup, Clients: clients}, onDelete)
	}
	arrays, links := books(0), []store.Mapping{{Source: "Books", Target: "Authors", Key: "author"}}
	x := model.Save("Books", "x", `{"author":"a"}`)
	for _, onDelete := range []string{store.OnDeleteClear, store.OnDeleteCascade} {
		maps := slices.Clone(links)
		maps[0].Cascade = onDelete == store.OnDeleteCascade
		add("a book is created while its author is deleted", onDelete, maps, authors(),
			[]model.Op{model.Delete("Authors", "a")}, []model.Op{x})
		add("a book moves while its authors are deleted", onDelete, maps, join(authors(), x),
			[]model.Op{model.Delete("Authors", "b")}, []model.Op{model.Update("Books", "x", `{"author":"b"}`)})
		add("an author is deleted and created again", onDelete, maps, join(authors(), x),
			[]model.Op{model.Delete("Authors", "a"), model.Save("Authors", "a", `{}`)},
			[]model.Op{model.Update("Books", "x", `{"title":"2"}`)})
	}
	add("a book of two authors", store.OnDeleteClear, links,
		join(authors(), model.Save("Books", "x", `{"author":["a","b"]}`)),
		[]model.Op{model.Delete("Authors", "a")}, []model.Op{model.Delete("Authors", "b")})
	add("a book leaves an array", store.OnDeleteClear, arrays, join(authors(), x),
		[]model.Op{model.Delete("Authors", "a")}, []model.Op{model.Update("Books", "x", `{"title":"2"}`)})
	return all
}

// checkReferences checks that no reference that a deletion clears names a deleted object.
func checkReferences(ctx context.Context, set *store.Set, histories model.Histories) error {
	for _, r := range set.References() {
		if r.OnDelete != store.OnDeleteClear {
			continue
		}
		sources, err := objects(ctx, set.Store(r.Source))
		if err != nil {
			return err
		}
		for uuid, o := range sources {
			for key, target := range histories {
				named, ok := ofStore(key, r.Target)
				if ok && !target.Live && target.Deleted > 0 && names(&store.Mapping{Key: r.Field}, o, named) {
					return fmt.Errorf("%s/%s names %s, which is deleted", r.Source, uuid, key)
				}
			}
		}
	}
	return nil
}

// When all is settled, no reference names a deleted object, but by keep or restrict.
func TestReferencesSettleInEveryInterleaving(t *testing.T) {
	for name, s := range referenceScenarios() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			explore(t, s)
		})
	}
}

func TestReferencesSettleAfterCrashes(t *testing.T) {
	for name, s := range referenceScenarios() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s.Crash, s.MaxCrashes = true, 1
			explore(t, s)
		})
	}
}

// An object that is written during the deletion of what it names is found by its own event alone.
func TestWithoutTheEventsOfObjectsAReferenceDangles(t *testing.T) {
	for _, onDelete := range []string{store.OnDeleteClear, store.OnDeleteCascade} {
		s := referenceScenarios()[onDelete+": a book is created while its author is deleted"]
		s.Fault.DropEvent = func(e *event.Envelope) bool { return e.Store == "Books" }
		if stats, err := newChecker(t, s).Explore(t.Context(), 100_000); err == nil {
			t.Errorf("%s: every reference settles without the events of books: %v", onDelete, stats)
		}
	}
}
