package mapping

import (
	"context"
	"errors"

	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/object"
	"belfry/pkg/store"
)

// ClearIf removes the uuid of a target from what an object names by a field, given as it was read, if cond holds for
// the object, and reports whether it did. It evaluates cond as DeleteIf does.
func ClearIf(ctx context.Context, s *store.Store, field, target string, x store.Stored,
	cond func(context.Context, store.Stored) (bool, error)) (bool, error) {
	return actIf(ctx, s, x, cond, func(x store.Stored) error {
		value := without(object.Field(x.Body, field), target)
		_, err := store.NewWorker(s).CompareAndSet(ctx, x, object.Object{field: value})
		return err
	})
}

// without returns a value that names a target without it: an array of the other elements, or nil.
func without(value []byte, target string) []byte {
	if len(value) == 0 || value[0] != '[' {
		return nil
	}
	left := []byte{'['}
	object.Elements(value, func(element []byte) bool {
		if uuid, ok := object.Named(element); ok && uuid == target {
			return true
		}
		if len(left) > 1 {
			left = append(left, ',')
		}
		left = append(left, element...)
		return true
	})
	return append(left, ']')
}

// Follow does with an object what a reference says, if it names a target that has been deleted. An object that is
// deleted with its target must have been saved during the deletion; a reference to clear may be younger.
func (r *Reconciler) Follow(ctx context.Context, ref *store.Referring, target, source string) error {
	if m := r.set.LinkOf(ref); m != nil {
		return r.Reconcile(ctx, m, target, []string{source})
	}
	if ref.OnDelete != store.OnDeleteClear {
		return nil
	}
	ctx = withOrigin(ctx, event.OriginCascade)
	objects := r.set.Store(ref.Source)
	x, err := objects.Get(ctx, source)
	if err == nil {
		_, err = ClearIf(ctx, objects, ref.Field, target, x, func(ctx context.Context, x store.Stored) (bool, error) {
			if !names(x, ref.Field, target) {
				return false, nil
			}
			_, deleted, err := r.set.Store(ref.Target).Deleted(ctx, target)
			return deleted, err
		})
	}
	if errors.Is(err, errs.NotFound) {
		return nil
	}
	return err
}
