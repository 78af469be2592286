package mapping

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/object"
	"belfry/pkg/store"
)

// GracePeriod is how long after the deletion of a cascading target an object
// that is saved with the target's uuid still counts as saved during the
// deletion, and is deleted with it. It must exceed the difference of the clocks
// of processes that write one set of stores.
const GracePeriod = 2 * time.Second

// deleteOrphans deletes those of the sources that were saved while their
// cascading target was being deleted.
func (r *Reconciler) deleteOrphans(ctx context.Context, m *store.Mapping, target string, sources []string) error {
	if !m.Cascade {
		return nil
	}
	ctx = withOrigin(ctx, event.OriginCascade)
	objects := r.set.Store(m.Source)
	isOrphan := func(ctx context.Context, x store.Stored) (bool, error) {
		t, deleted, err := r.set.Store(m.Target).Deleted(ctx, target)
		return deleted && IsOrphan(m, x, target, t), err
	}
	for chunk := range slices.Chunk(sources, readAtOnce) {
		left, together, err := found(ctx, objects, chunk)
		if err != nil {
			return err
		}
		if err := r.eachOrphan(ctx, left, together, func(ctx context.Context, x store.Stored) error {
			_, err := DeleteIf(ctx, objects, x, isOrphan)
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}

// orphansAtOnce is how many objects a Reconciler deletes at once, for all targets together.
const orphansAtOnce = 16

// eachOrphan calls act for objects: for some at once, or for one after the other.
func (r *Reconciler) eachOrphan(ctx context.Context, all []store.Stored, together bool,
	act func(context.Context, store.Stored) error) error {
	g, gctx := errgroup.WithContext(ctx)
	if !together {
		g.SetLimit(1)
	}
	for _, x := range all {
		g.Go(func() error {
			if err := r.orphans.Acquire(gctx, 1); err != nil {
				return err
			}
			defer r.orphans.Release(1)
			return act(gctx, x)
		})
	}
	return g.Wait()
}

// found returns those of some objects that exist, by one request if the backend can. Then it is reached over a network,
// and its writes go together. After a cascade the objects are few.
func found(ctx context.Context, s *store.Store, uuids []string) (all []store.Stored, together bool, err error) {
	uuids = validOf(uuids)
	if len(uuids) > 1 {
		many, ok, err := store.NewWorker(s).GetMany(ctx, uuids)
		if ok || err != nil {
			return slices.Collect(maps.Values(many)), true, err
		}
	}
	for _, uuid := range uuids {
		x, err := s.Get(ctx, uuid)
		switch {
		case err == nil:
			all = append(all, x)
		case !errors.Is(err, errs.NotFound):
			return nil, false, err
		}
	}
	return all, false, nil
}

const gracePeriod = uint64(GracePeriod / time.Microsecond) // in revisions

// IsOrphan reports whether an object should have been deleted with its target,
// which was deleted and has not been created again.
func IsOrphan(m *store.Mapping, x store.Stored, target string, t store.Tombstone) bool {
	return LinkedTo(m, x, m.DeletedTarget(target, t)) && UpdatedAt(x) <= t.Revision+gracePeriod
}

// LinkedTo reports whether an object names a target, and has the same owner if the
// mapping asks for that. Such an object is deleted with the target, also when the
// mapping's condition hides it.
func LinkedTo(m *store.Mapping, x store.Stored, target store.Target) bool {
	return Names(m, x, target.UUID) && m.Owned(x.UUID, x.Body, target)
}

// Names reports whether the key of an object names a target.
func Names(m *store.Mapping, x store.Stored, target string) bool {
	return names(x, m.Key, target)
}

// names reports whether a field of an object names a target.
func names(x store.Stored, field, target string) bool {
	return slices.Contains(store.KeyTargets(object.Field(x.Body, field)), target)
}

// DeleteIf deletes an object, given as it was read, if cond holds for it, and
// reports whether it did. When the object has changed in the meantime it is read
// and cond is evaluated again.
//
// cond is always evaluated after the object was read. So the target that cond reads is
// not older than the object. An object written for a re-created target is therefore not
// mistaken for one of the former incarnation.
func DeleteIf(ctx context.Context, s *store.Store, x store.Stored,
	cond func(context.Context, store.Stored) (bool, error)) (bool, error) {
	return actIf(ctx, s, x, cond, func(x store.Stored) error { return s.Delete(ctx, x.UUID, x.Revision) })
}

// actIf is DeleteIf for any write of an object at its revision.
func actIf(ctx context.Context, s *store.Store, x store.Stored,
	cond func(context.Context, store.Stored) (bool, error), act func(store.Stored) error) (bool, error) {
	for {
		ok, err := cond(ctx, x)
		if err != nil || !ok {
			return false, err
		}
		err = act(x)
		switch {
		case err == nil:
			return true, nil
		case errors.Is(err, errs.NotFound):
			return false, nil
		case !errors.Is(err, errs.Mismatch) && !errors.Is(err, errs.Conflict):
			return false, err
		}
		if err := ctx.Err(); err != nil {
			return false, err
		}
		if x, err = s.Get(ctx, x.UUID); errors.Is(err, errs.NotFound) {
			return false, nil
		} else if err != nil {
			return false, err
		}
	}
}

// CreatedAt is when an object was created, as a revision.
func CreatedAt(x store.Stored) uint64 { return revisionOf(x, "created") }

// UpdatedAt is when a client last wrote an object, as a revision. The object's
// own revision may be higher: workers that write its arrays raise only that.
func UpdatedAt(x store.Stored) uint64 { return revisionOf(x, "updated") }

func revisionOf(x store.Stored, field string) uint64 {
	text, _ := object.Text(object.Field(x.Body, field))
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return x.Revision
	}
	return store.RevisionAt(t)
}
