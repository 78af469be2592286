package mapping

import (
	"context"
	"errors"

	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/store"
)

// Reindex writes an object with all keys of the indexes. It does nothing to one that does not exist, or is written at the
// same time: any other write of a process of this release has all keys, and an event.
func Reindex(ctx context.Context, s *store.Store, uuid string) error {
	ctx = store.WithCall(ctx, store.Call{Origin: event.OriginMapping})
	o, err := s.Get(ctx, uuid)
	if err == nil {
		err = store.NewWorker(s).Reindex(ctx, o)
	}
	return unlessWritten(err)
}

// Rewrite writes an object with its strings in one form, and with an event, by which its entries are made. Any other write
// of this release does the same.
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
