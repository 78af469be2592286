package verify

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"belfry/internal/backoff"
	"belfry/pkg/errs"
	"belfry/pkg/mapping"
	"belfry/pkg/store"
)

// copying returns the names of the stores whose objects have copies of referenced objects.
func (v *verification) copying() (names []string) {
	for _, name := range slices.Sorted(maps.Keys(v.set.Stores())) {
		if v.set.HasCopies(name) {
			names = append(names, name)
		}
	}
	return names
}

// copies compares the copies of referenced objects with their sources, before mappings are compared that copy them
// onward. With Repair it corrects them.
func (v *verification) copies(ctx context.Context) error {
	copier := mapping.NewCopier(v.set, mapping.CopierOptions{})
	for _, name := range v.copying() {
		s := v.set.Store(name)
		var differing []string
		for o, err := range s.All(ctx, pageSize) {
			if err != nil {
				return errs.Wrap(err, errs.KindOf(err), "verifying the copies of %s", name)
			}
			v.report.Copied++
			fields, err := s.Miscopied(ctx, o)
			if err != nil {
				return errs.Wrap(err, errs.KindOf(err), "verifying the copies of %s", name)
			}
			if len(fields) > 0 {
				differing = append(differing, o.UUID)
			}
			if len(differing) == pageSize {
				if err := v.settleCopies(ctx, copier, s, differing); err != nil {
					return err
				}
				differing = differing[:0]
			}
		}
		if err := v.settleCopies(ctx, copier, s, differing); err != nil {
			return err
		}
	}
	return nil
}

// settleCopies reads objects again whose copies differed, until they are right or RecheckFor has passed, and reports
// those that are left. With Repair it corrects them.
func (v *verification) settleCopies(ctx context.Context, copier *mapping.Copier, s *store.Store, left []string) error {
	deadline := time.Now().Add(v.options.RecheckFor)
	for delay := backoff.New(10*time.Millisecond, time.Second); len(left) > 0; {
		last := !time.Now().Before(deadline)
		var still []string
		for _, uuid := range left {
			right, err := v.settleCopy(ctx, copier, s, uuid, last)
			if err != nil {
				return errs.Wrap(err, errs.KindOf(err), "verifying the copies of %s %s", s.Name(), uuid)
			}
			if !right {
				still = append(still, uuid)
			}
		}
		if left = still; last {
			return nil
		}
		if len(left) > 0 {
			if err := delay.Wait(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// settleCopy reports whether the copies of an object are right, which a repair makes them. report adds the differences
// to the report.
func (v *verification) settleCopy(ctx context.Context, copier *mapping.Copier, s *store.Store, uuid string,
	report bool) (right bool, err error) {
	o, err := s.Get(ctx, uuid)
	if errors.Is(err, errs.NotFound) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	fields, err := s.Miscopied(ctx, o)
	if err != nil || len(fields) == 0 {
		return err == nil, err
	}
	if v.options.Repair {
		if err := copier.Correct(ctx, s, uuid); err != nil {
			return false, err
		}
		v.report.Repaired++
		v.options.Tracker.corrected(1)
		return true, nil
	}
	if report {
		for _, field := range fields {
			v.report.add([]Difference{{
				Kind: Stale, Target: s.Name(), Holder: uuid, Array: field,
				Detail: "differs from the property of the object that it is a copy of",
			}})
		}
	}
	return false, nil
}
