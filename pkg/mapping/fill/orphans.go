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

// orphansOf begins the names of the works of orphans.
const orphansOf = "orphans of "

// orphans deletes the objects of a store whose targets were deleted by events that were missed, as the cascade would
// have. It is done after a loss of events. It is also done once processes with different cascades have the same: until
// then events could go to a worker that deletes nothing. Then since is when a process had these cascades first: one
// that is new deletes nothing for earlier deletions.
func orphans(set *store.Set, s *store.Store, maps []*store.Mapping, r *mapping.Reconciler) *work {
	var definition []any
	for _, m := range maps {
		definition = append(definition, m.Target, m.Key, m.SourceOwner, m.TargetOwner)
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
			return slices.ContainsFunc(maps, func(m *store.Mapping) bool { return len(targetsOf(m, o)) > 0 })
		},
		fill: func(ctx context.Context, o store.Stored, read func(objects int) error) error {
			for _, m := range maps {
				for _, target := range targetsOf(m, o) {
					if there.has(m.Target, target) {
						continue
					}
					t, deleted, err := set.Store(m.Target).Deleted(ctx, target)
					if err == nil && !deleted {
						there.add(m.Target, target)
					}
					if err == nil && deleted && t.Revision >= from && mapping.IsOrphan(m, o, target, t) {
						err = r.Reconcile(ctx, m, target, []string{o.UUID}) // which reads it again
					}
					if err == nil {
						err = read(1)
					}
					if err != nil {
						return err
					}
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

func targetsOf(m *store.Mapping, o store.Stored) []string {
	return store.KeyTargets(object.Field(o.Body, m.Key))
}
