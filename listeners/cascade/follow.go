package cascade

import (
	"context"
	"errors"
	"slices"

	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/mapping"
	"belfry/pkg/object"
	"belfry/pkg/store"
)

// clearIndexed clears a reference in the objects that the index has now, and returns in how many.
func (w *Worker) clearIndexed(ctx context.Context, r *store.Referring, e *event.Envelope) (int, error) {
	objects := w.set.Store(r.Source)
	return w.each(ctx, linked{objects, r.Field, w.set.Store(r.Target), e.UUID},
		func(ctx context.Context, x store.Stored, again again) (bool, error) {
			cond := func(ctx context.Context, x store.Stored) (bool, error) { return mustClear(ctx, r, e, x, again) }
			return mapping.ClearIf(ctx, objects, r.Field, e.UUID, x, cond)
		})
}

// mustClear reports whether an object names a deleted target. When the target has been created again, objects written
// since the deletion name its new incarnation.
func mustClear(ctx context.Context, r *store.Referring, e *event.Envelope, x store.Stored,
	again again) (bool, error) {
	if !slices.Contains(store.KeyTargets(object.Field(x.Body, r.Field)), e.UUID) {
		return false, nil
	}
	recreated, err := again(ctx, x)
	if err != nil {
		return false, err
	}
	return !recreated || mapping.UpdatedAt(x) <= deletedAt(e), nil
}

// follow does what the references of an object say about the targets that it newly names, where they have been deleted.
// The events of deletions that come later do so for objects that the index has.
func (w *Worker) follow(ctx context.Context, e *event.Envelope) error {
	for _, r := range w.set.Following(e.Store) {
		targets, err := w.named(ctx, r.Field, e)
		if err != nil {
			return err
		}
		for _, target := range targets {
			if err := w.reconciler.Follow(ctx, &r, target, e.UUID); err != nil {
				return err
			}
		}
	}
	return nil
}

// named returns what an event's object names by a field since the event. The object is read if the event lacks the
// field: it may be private, or the event too large.
func (w *Worker) named(ctx context.Context, field string, e *event.Envelope) ([]string, error) {
	if e.Event == event.StoreUpdated && !slices.Contains(e.Changed, field) {
		return nil, nil
	}
	value := object.Field(e.Object, field)
	if value == nil {
		x, err := w.set.Store(e.Store).Get(ctx, e.UUID)
		if err != nil && !errors.Is(err, errs.NotFound) {
			return nil, err
		}
		value = object.Field(x.Body, field)
	}
	former := store.KeyTargets(e.Previous[field])
	return slices.DeleteFunc(store.KeyTargets(value), func(uuid string) bool {
		return slices.Contains(former, uuid)
	}), nil
}
