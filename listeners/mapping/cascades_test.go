package mapping_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"belfry/pkg/event"
	"belfry/pkg/mapping"
	"belfry/pkg/store"
	encoded "belfry/pkg/store/object"
	"belfry/test/model"
)

const settle = uint64(mapping.GracePeriod / time.Microsecond)

// cascaded is what must hold of cascades whenever workers have nothing to do:
// no object is left that was linked when its target was deleted, or written
// while it was.
func cascaded(ctx context.Context, set *store.Set, lives model.Histories) error {
	for i := range set.Mappings() {
		m := &set.Mappings()[i]
		sources, err := objects(ctx, set.Store(m.Source))
		if err != nil {
			return err
		}
		for uuid, o := range sources {
			x := lives[m.Source+"/"+uuid]
			for key, t := range lives {
				target, ok := ofStore(key, m.Target)
				if ok && m.Cascade && t.Deleted > 0 && names(m, o, target) && overdue(x, t) {
					return fmt.Errorf("%s/%s %+v should have gone with %s %+v", m.Source, uuid, x, key, t)
				}
			}
		}
	}
	return nil
}

func ofStore(key, name string) (uuid string, ok bool) {
	if len(key) <= len(name) || key[:len(name)+1] != name+"/" {
		return "", false
	}
	return key[len(name)+1:], true
}

// overdue reports whether an object that names a deleted target must have gone.
// A write and a deletion that overlap may be taken in either order, and a
// deletion that takes longer to be stored than settle leaves what was created
// meanwhile.
func overdue(x, target model.History) bool {
	if target.Live {
		return x.WrittenAt <= target.DeletedAt && x.Written < target.Deleted
	}
	until := target.DeletedAt + settle
	return x.Linked < target.Deleted && model.Epoch+x.Created*model.Tick <= until || x.WrittenAt <= until
}

// justified judges the deletions that workers make: none takes an object that
// was written since its target is back, or created long after its end.
func justified(mappings []store.Mapping) func(lives model.Histories, e *event.Envelope) error {
	return func(lives model.Histories, e *event.Envelope) error {
		if e.Event != event.StoreDeleted || e.Origin == event.OriginGo {
			return nil
		}
		x := lives[e.Store+"/"+e.UUID]
		for _, m := range mappings {
			if m.Source != e.Store || !m.Cascade {
				continue
			}
			for _, target := range store.KeyTargets(encoded.Field(e.Object, m.Key)) {
				t := lives[m.Target+"/"+target]
				if t.Live && t.Deleted > 0 && x.WriteBegan < t.Created ||
					!t.Live && t.Deleted > 0 && model.Epoch+x.CreateBegan*model.Tick <= t.DeletedAt+settle {
					return nil
				}
			}
		}
		return fmt.Errorf("%s/%s %+v was deleted though nothing asked for it: %+v", e.Store, e.UUID, x, lives)
	}
}

// cascading are worlds whose clock matters, since a cascade compares times.
func cascading() map[string]model.Scenario {
	shelves := books(0)
	shelves[0].Cascade = true
	people := []store.Mapping{{Source: "People", Target: "People", Key: "boss", Array: "staff", Cascade: true}}
	return map[string]model.Scenario{
		"a source is saved while its target is deleted": {
			Mappings: shelves,
			Setup:    authors(),
			Clients: [][]model.Op{
				{model.Delete("Authors", "a")},
				{model.Save("Books", "x", `{"author":"a"}`)},
			},
		},
		"a source is moved while its targets are deleted": {
			Mappings: shelves,
			Setup:    with(authors(), model.Save("Books", "x", `{"author":"a"}`)),
			Clients: [][]model.Op{
				{model.Delete("Authors", "b")},
				{model.Update("Books", "x", `{"author":"b"}`)},
			},
		},
		"a linked source changes after its target's end": {
			Mappings: shelves,
			Setup:    with(authors(), model.Save("Books", "x", `{"author":"a"}`)),
			Clients: [][]model.Op{{
				model.Delete("Authors", "a"), model.Save("Authors", "c", `{}`), model.Save("Authors", "d", `{}`),
				model.Update("Books", "x", `{"title":"2"}`),
			}},
		},
		"a target is deleted and created again": {
			Mappings: shelves,
			Setup:    with(authors(), model.Save("Books", "x", `{"author":"a"}`)),
			Clients: [][]model.Op{
				{model.Delete("Authors", "a"), model.Save("Authors", "a", `{}`), model.Update("Books", "x", `{"title":"2"}`)},
			},
		},
		"a circle of two": {
			Mappings: people,
			Setup:    []model.Op{model.Save("People", "p", `{"boss":"q"}`), model.Save("People", "q", `{"boss":"p"}`)},
			Clients:  [][]model.Op{{model.Delete("People", "p")}, {model.Update("People", "q", `{"boss":null}`)}},
		},
	}
}

// Handlers that vanish make these worlds too large to go through each time:
// they are left to the walks, or to -model.crash.
//
// No order of steps leaves an object that a cascade should have taken, or takes
// another.
func TestEveryInterleavingOfACascade(t *testing.T) {
	for name, w := range cascading() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w.MaxInFlight, w.Crash, w.Clock, w.AtomicClients = *handsFlag, *crashFlag, true, true
			explore(t, w)
		})
	}
}
