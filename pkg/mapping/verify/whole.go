package verify

import (
	"context"
	"sync/atomic"

	"belfry/pkg/mapping"
	"belfry/pkg/store"
)

// whole counts the objects whose large arrays are in chunks although the configuration wants them whole, so that a
// release which can't read chunks can be started again. With Repair it makes them whole.
func (v *verification) whole(ctx context.Context) error {
	return v.eachStore(ctx, "looking for arrays in chunks", (*store.Store).WholeArrays, v.wholePage)
}

func (v *verification) wholePage(ctx context.Context, s *store.Store, page []store.Stored) error {
	var left atomic.Int64
	err := eachAtOnce(ctx, page, func(ctx context.Context, _ int, o store.Stored) error {
		switch {
		case !o.InChunks:
			return nil
		case v.options.Repair:
			return mapping.MakeWhole(ctx, s, o)
		}
		left.Add(1)
		return nil
	})
	v.report.InChunks += left.Load()
	return err
}
