package fill

import (
	"context"
	"slices"
	"time"

	"belfry/pkg/store"
	"belfry/pkg/store/driver"
	"belfry/pkg/walk"
)

// Required returns what requests depend on: the claims of unique values, and the indexes of stores.
func Required(set *store.Set) Works {
	works := Claims(set)
	all := works.byName
	for name, s := range set.Stores() {
		all["indexes of "+name] = indexes(s)
	}
	return newWorks(works.state, all)
}

const (
	reindexed = 2000        // objects that are indexed at once: a backend may sync once for all of them
	recheck   = time.Minute // how often the backends are asked whether indexes that were built are still complete
)

// builds is how indexes are built: by store.Indexes.
type builds interface {
	Known() []string
	Building(ctx context.Context) ([]driver.Build, error)
	Reindex(ctx context.Context, uuids []string) error
	Complete(ctx context.Context, builds []driver.Build) error
	Release(ctx context.Context) error
	SetProgress(percent int)
}

// indexes builds the indexes of a store that are not complete. The backend knows which are: it notices when something
// writes without one. That everything which writes has an index, so that it can be built, is known here.
func indexes(s *store.Store) *work {
	x := s.Indexes()
	return &work{
		store: s, page: reindexed, kind: walk.Index, refuses: true, shown: s.Name(), called: "store",
		what: "the indexes of a store",
		does: "building the indexes of a store", done: "the indexes of a store are built",
		begins:     "indexes are new, or were not kept up to date: building them from the objects",
		definition: hashOf(x.Names()), build: x,
	}
}

// reopenIndexes has indexes built again that were built, and have become incomplete: something has written without them
// that does not say by which configuration, such as a command.
func (f *Filler) reopenIndexes(ctx context.Context) error {
	now := f.opts.Now()
	all := now.Sub(f.rechecked) >= recheck
	var incomplete []string
	for name, w := range f.works {
		if w.build == nil || !all && len(w.build.Known()) == 0 {
			continue
		}
		building, err := w.build.Building(ctx)
		if err != nil {
			return err
		}
		if len(building) > 0 && f.current.Load().filled(name, w.definition) {
			incomplete = append(incomplete, name)
		}
	}
	if all {
		f.rechecked = now
	}
	if len(incomplete) == 0 {
		return nil
	}
	return f.change(ctx, func(s *state) (changed bool) {
		for _, name := range incomplete {
			changed = s.reopen(name, f.works[name].definition) || changed
		}
		return changed
	})
}

// settleIndexes marks all complete indexes of stores as built in one change, and removes the data of indexes that their
// stores no longer have.
func (f *Filler) settleIndexes(ctx context.Context, due []string) error {
	var complete []string
	for _, name := range due {
		w := f.works[name]
		if w.build == nil {
			continue
		}
		building, err := w.build.Building(ctx)
		if err == nil && len(building) == 0 {
			complete = append(complete, name)
			err = w.build.Release(ctx)
		}
		if err != nil {
			return err
		}
	}
	if len(complete) == 0 {
		return nil
	}
	now := f.opts.Now().UTC()
	return f.change(ctx, func(s *state) (changed bool) {
		for _, name := range complete {
			changed = s.settle(name, f.works[name], now) || changed
		}
		return changed
	})
}

// begun reports whether a fill that was interrupted can be continued. A build that has begun since is not part of it.
func begun(at *progress, building []driver.Build) bool {
	return at != nil &&
		!slices.ContainsFunc(building, func(b driver.Build) bool { return !slices.Contains(at.Builds, b) })
}

// reindex writes the keys of the objects of a page.
func (r *run) reindex(ctx context.Context, page []store.Stored) error {
	uuids := make([]string, len(page))
	for i, o := range page {
		uuids[i] = o.UUID
	}
	if err := r.work.build.Reindex(ctx, uuids); err != nil {
		return err
	}
	r.targets.Add(int64(len(page)))
	if at := r.walk.Progress(); at.Total > 0 {
		r.work.build.SetProgress(int(min(99, 100*(at.Done+int64(len(page)))/at.Total)))
	}
	return nil
}

// completeBuilds makes the indexes complete, and removes the data of others.
func (r *run) completeBuilds(ctx context.Context) error {
	if err := r.work.build.Complete(ctx, r.builds); err != nil {
		return err
	}
	return r.work.build.Release(ctx)
}
