package mapping

import (
	"context"
	"errors"
	"slices"
	"time"

	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/store"
	"belfry/pkg/store/object"
)

// orphans deletes objects that were saved while their cascading target was
// being deleted.
func (k *Keeper) orphans(ctx context.Context, m *store.Mapping, target string, sources []string) error {
	if !m.Cascade {
		return nil
	}
	ctx = as(ctx, event.OriginCascade)
	objects := k.set.Store(m.Source)
	goes := func(ctx context.Context, x store.Stored) (bool, error) {
		deleted, gone, err := k.set.Store(m.Target).Deleted(ctx, target)
		return gone && k.Doomed(m, x, target, deleted), err
	}
	for _, source := range sources {
		x, err := objects.Get(ctx, source)
		if err == nil {
			_, err = Sweep(ctx, objects, x, goes)
		}
		if err != nil && !errors.Is(err, errs.NotFound) {
			return err
		}
	}
	return nil
}

// Doomed reports whether an object should have gone with its target, which was
// deleted at a revision and is not back.
func (k *Keeper) Doomed(m *store.Mapping, x store.Stored, target string, deleted uint64) bool {
	return LinkedTo(m, x, target) && Updated(x) <= deleted+uint64(k.Settle.Microseconds())
}

// LinkedTo reports whether an object names a target.
func LinkedTo(m *store.Mapping, x store.Stored, target string) bool {
	return slices.Contains(store.Names(object.Field(x.Body, m.Key)), target)
}

// Sweep deletes an object, given as it was read, if goes says so, and reports
// whether it did. When the object has changed meanwhile goes is asked again. It
// is always asked after the object was read: what goes finds of the target is
// then not older than the object, and an object that was written for a target
// that is back is not taken for one of its former life.
func Sweep(ctx context.Context, s *store.Store, x store.Stored, goes func(context.Context, store.Stored) (bool, error)) (bool, error) {
	for {
		ok, err := goes(ctx, x)
		if err != nil || !ok {
			return false, err
		}
		err = s.Delete(ctx, x.UUID, x.Revision)
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

// Created is when an object was created, as a revision.
func Created(x store.Stored) uint64 { return stamp(x, "created") }

// Updated is when an object was last written, as a revision. Its own revision
// may be later: keeping its arrays counts there and not here.
func Updated(x store.Stored) uint64 { return stamp(x, "updated") }

func stamp(x store.Stored, field string) uint64 {
	text, _ := object.Text(object.Field(x.Body, field))
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return x.Revision
	}
	return store.RevisionAt(t)
}
