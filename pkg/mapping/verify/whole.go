package verify

import (
	"context"
	"maps"
	"slices"
	"sync/atomic"

	"belfry/pkg/errs"
	"belfry/pkg/mapping"
	"belfry/pkg/store"
)

// whole counts the objects whose large arrays are in chunks although the configuration wants them whole, so that a
// release which can't read chunks can be started again. With Repair it makes them whole.
func (v *verification) whole(ctx context.Context) error {
	for _, name := range slices.Sorted(maps.Keys(v.set.Stores())) {
		s := v.set.Store(name)
		if !s.WholeArrays() {
			continue
		}
		if err := eachPage(ctx, s, func(page []store.Stored) error { return v.wholePage(ctx, s, page) }); err != nil {
			return errs.Wrap(err, errs.KindOf(err), "looking for arrays of %s in chunks", name)
		}
	}
	return nil
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
