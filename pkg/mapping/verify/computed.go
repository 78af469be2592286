package verify

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"belfry/pkg/errs"
	"belfry/pkg/mapping"
	"belfry/pkg/store"
)

// compute evaluates the computed fields of all objects again, before mappings are compared that copy them. With Repair
// it writes the objects that differ. A record has a field and its source fields, so there is nothing to
// wait for.
func (v *verification) compute(ctx context.Context) error {
	for _, name := range slices.Sorted(maps.Keys(v.set.Stores())) {
		s := v.set.Store(name)
		if len(s.ComputedFields()) == 0 {
			continue
		}
		for o, err := range s.All(ctx, pageSize) {
			if err == nil {
				err = v.computeObject(ctx, s, o)
			}
			if err != nil {
				return errs.Wrap(err, errs.KindOf(err), "verifying the computed fields of %s", name)
			}
		}
	}
	return nil
}

func (v *verification) computeObject(ctx context.Context, s *store.Store, o store.Stored) error {
	v.report.Computed++
	fields, err := s.Miscomputed(o)
	if err != nil || len(fields) == 0 {
		return err
	}
	if v.options.Repair {
		if fields, err = mapping.Recompute(ctx, s, o); err != nil {
			return err
		}
		if len(fields) == 0 {
			v.report.Repaired++
			v.options.Tracker.corrected(1)
		}
	}
	for _, field := range fields {
		v.report.add([]Difference{{
			Kind: Stale, Target: s.Name(), Holder: o.UUID, Array: field,
			Detail: fmt.Sprintf("differs from the value of the expression of %s", field),
		}})
	}
	return nil
}
