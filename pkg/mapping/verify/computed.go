package verify

import (
	"context"
	"fmt"
	"sync/atomic"

	"belfry/pkg/mapping"
	"belfry/pkg/store"
)

// compute evaluates the computed fields of all objects again, before mappings are compared that copy them. With Repair
// it writes the objects that differ. A record has a field and its source fields, so there is nothing to
// wait for.
func (v *verification) compute(ctx context.Context) error {
	isComputed := func(s *store.Store) bool { return len(s.ComputedFields()) > 0 }
	return v.eachStore(ctx, "verifying the computed fields", isComputed, v.computePage)
}

// computePage compares the computed fields of a page, and with Repair writes the objects that differ, some at once.
func (v *verification) computePage(ctx context.Context, s *store.Store, page []store.Stored) error {
	v.report.Computed += int64(len(page))
	wrong := make([][]string, len(page))
	var repaired atomic.Int64
	err := eachAtOnce(ctx, page, func(ctx context.Context, i int, o store.Stored) (err error) {
		if wrong[i], err = s.Miscomputed(o); err != nil || len(wrong[i]) == 0 || !v.options.Repair {
			return err
		}
		if wrong[i], err = mapping.Recompute(ctx, s, o); err == nil && len(wrong[i]) == 0 {
			repaired.Add(1)
			v.options.Tracker.corrected(1)
		}
		return err
	})
	v.report.Repaired += int(repaired.Load())
	for i, o := range page {
		for _, field := range wrong[i] {
			v.report.add([]Difference{{
				Kind: Stale, Target: s.Name(), Holder: o.UUID, Array: field,
				Detail: fmt.Sprintf("differs from the value of the expression of %s", field),
			}})
		}
	}
	return err
}
