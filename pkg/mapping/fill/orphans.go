package fill

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"belfry/pkg/mapping"
	"belfry/pkg/object"
	"belfry/pkg/store"
	"belfry/pkg/walk"
)

// cascading returns the mappings and cascades that delete objects of a store with their targets.
func cascading(set *store.Set, source string) (all []*store.Mapping) {
	for _, maps := range set.Cascades() {
		for _, m := range maps {
			if m.Source == source {
				all = append(all, m)
			}
		}
	}
	slices.SortFunc(all,
		func(a, b *store.Mapping) int { return strings.Compare(a.Target+"\n"+a.Key, b.Target+"\n"+b.Key) })
	return all
}

// clearing returns the references of a store that the deletion of an object clears.
func clearing(set *store.Set, source string) []store.Referring {
	return slices.DeleteFunc(slices.Clone(set.Following(source)), func(r store.Referring) bool {
		return r.OnDelete != store.OnDeleteClear
	})
}

// orphansOf begins the names of the works of orphans.
const orphansOf = "orphans of "

// orphans deletes the objects of a store whose targets were deleted by events that were missed, as the cascade would
// have. It is done after a loss of events. It is also done once processes with different cascades have the same: until
// then events could go to a worker that deletes nothing. Then since is when a process had these cascades first: one
// that is new deletes nothing for earlier deletions.
//
// References that a deletion clears are cleared in the same way.
func orphans(set *store.Set, s *store.Store, maps []*store.Mapping, clears []store.Referring,
	r *mapping.Reconciler) *work {
	var definition []any
	for _, m := range maps {
		definition = append(definition, m.Target, m.Key, m.SourceOwner, m.TargetOwner)
	}
	for _, c := range clears {
		definition = append(definition, c.Target, c.Field, c.OnDelete)
	}
	there, from := &targets{}, uint64(0)
	return &work{
		begin: func(since time.Time) {
			there.forget()
			if from = 0; !since.IsZero() {
				from = store.RevisionAt(since)
			}
		},
		store: s, page: 100, atOnce: targetsAtOnce, kind: walk.Cascade, shown: s.Name(), called: "store",
		what:   "the deletions of cascades",
		begins: "cascades are new or have changed: deleting the objects that processes without them have left",
		does:   "deleting the objects that cascades have left", done: "the objects that cascades have left are deleted",
		definition: hashOf(definition...), together: true, onEvents: true, onlyAgain: true,
		needs: func(o store.Stored) bool {
			return slices.ContainsFunc(maps, func(m *store.Mapping) bool { return len(targetsOf(m.Key, o)) > 0 }) ||
				slices.ContainsFunc(clears, func(c store.Referring) bool { return len(targetsOf(c.Field, o)) > 0 })
		},
		fill: func(ctx context.Context, o store.Stored, read func(objects int) error) error {
			// each calls repair for the targets that were deleted.
			each := func(name, key string, repair func(target string, t store.Tombstone) error) error {
				for _, target := range targetsOf(key, o) {
					if there.has(name, target) {
						continue
					}
					t, deleted, err := set.Store(name).Deleted(ctx, target)
					if err == nil && !deleted {
						there.add(name, target)
					}
					if err == nil && deleted && t.Revision >= from {
						err = repair(target, t)
					}
					if err == nil {
						err = read(1)
					}
					if err != nil {
						return err
					}
				}
				return nil
			}
			for _, m := range maps {
				err := each(m.Target, m.Key, func(target string, t store.Tombstone) error {
					if !mapping.IsOrphan(m, o, target, t) {
						return nil
					}
					return r.Reconcile(ctx, m, target, []string{o.UUID}) // which reads it again
				})
				if err != nil {
					return err
				}
			}
			for _, c := range clears {
				err := each(c.Target, c.Field, func(target string, _ store.Tombstone) error {
					return r.Follow(ctx, &c, target, o.UUID)
				})
				if err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// maxTargets is how many targets are remembered at once.
const maxTargets = 100_000

// targets are those that were not deleted when they were read. A target that is deleted after the work began has an
// event, which the worker handles, so it need not be read again until another loss begins the work again.
type targets struct {
	mu  sync.Mutex
	all map[[2]string]struct{} // by store and uuid
}

func (t *targets) forget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.all = map[[2]string]struct{}{}
}

func (t *targets) has(store, uuid string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, has := t.all[[2]string{store, uuid}]
	return has
}

func (t *targets) add(store, uuid string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.all) >= maxTargets {
		clear(t.all)
	}
	t.all[[2]string{store, uuid}] = struct{}{}
}

func targetsOf(key string, o store.Stored) []string {
	return store.KeyTargets(object.Field(o.Body, key))
}
