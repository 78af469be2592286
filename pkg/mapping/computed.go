package mapping

import (
	"context"
	"errors"

	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/store"
)

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
