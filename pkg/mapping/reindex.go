package mapping

import (
	"context"
	"errors"

	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/store"
)

// Reindex writes an object with all keys of the indexes. It does nothing to one that does not exist, or is written at
// the same time: any other write of a process of this release has all keys, and an event.
func Reindex(ctx context.Context, s *store.Store, uuid string) error {
	ctx = store.WithCall(ctx, store.Call{Origin: event.OriginMapping})
	o, err := s.Get(ctx, uuid)
	if err == nil {
		err = store.NewWorker(s).Reindex(ctx, o)
	}
	return unlessWritten(err)
}

// Rewrite writes an object with its strings in one form, and with an event, by which its entries are made. Any other
// write of this release does the same.
func Rewrite(ctx context.Context, s *store.Store, uuid string) error {
	ctx = store.WithCall(ctx, store.Call{Origin: event.OriginCompute})
	o, err := s.Get(ctx, uuid)
	if err == nil {
		_, err = store.NewWorker(s).CompareAndSet(ctx, o, nil)
	}
	return unlessWritten(err)
}

// unlessWritten is the error of a write that another one, or a deletion, makes needless.
func unlessWritten(err error) error {
	if errors.Is(err, errs.NotFound) || errors.Is(err, errs.Mismatch) {
		return nil
	}
	return err
}

// recomputeAttempts is how often an object is read again that other writes change at the same time.
const recomputeAttempts = 10

// Recompute writes an object again if computed fields differ from the values of their expressions, and returns those
// that still differ.
func Recompute(ctx context.Context, s *store.Store, o store.Stored) (left []string, err error) {
	ctx = store.WithCall(ctx, store.Call{Origin: event.OriginCompute})
	for range recomputeAttempts {
		if _, err = store.NewWorker(s).Recompute(ctx, o); !errors.Is(err, errs.Mismatch) {
			return nil, err
		}
		if o, err = s.Get(ctx, o.UUID); errors.Is(err, errs.NotFound) {
			return nil, nil
		} else if err != nil {
			return nil, err
		}
	}
	return s.Miscomputed(o)
}

// MakeWhole writes an object again whose large arrays are in chunks, in a store where none is to be. Nothing else
// changes but the revision, and there is no event. A write that has come between has made it whole.
func MakeWhole(ctx context.Context, s *store.Store, o store.Stored) error {
	if err := store.NewWorker(s).Reindex(ctx, o); !errors.Is(err, errs.Mismatch) {
		return err
	}
	return nil
}
