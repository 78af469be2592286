package verify

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync/atomic"
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
		err := eachPage(ctx, s, func(page []store.Stored) error {
			v.report.Copied += int64(len(page))
			found, err := v.miscopied(ctx, s, page)
			if err != nil {
				return err
			}
			if differing = append(differing, found...); len(differing) < pageSize {
				return nil
			}
			left := differing
			differing = nil
			return v.settleCopies(ctx, copier, s, left)
		})
		if err == nil {
			err = v.settleCopies(ctx, copier, s, differing)
		}
		if err != nil {
			return errs.Wrap(err, errs.KindOf(err), "verifying the copies of %s", name)
		}
	}
	return nil
}

// miscopied returns the objects of a page whose copies differ from their sources.
func (v *verification) miscopied(ctx context.Context, s *store.Store, page []store.Stored) (uuids []string, err error) {
	differs := make([]bool, len(page))
	err = eachAtOnce(ctx, page, func(ctx context.Context, i int, o store.Stored) error {
		fields, err := s.Miscopied(ctx, o)
		differs[i] = len(fields) > 0
		return err
	})
	for i, o := range page {
		if differs[i] {
			uuids = append(uuids, o.UUID)
		}
	}
	return uuids, err
}

// settleCopies reads objects again whose copies differed, until they are right or RecheckFor has passed, and reports
// those that are left. With Repair it corrects them.
func (v *verification) settleCopies(ctx context.Context, copier *mapping.Copier, s *store.Store, left []string) error {
	deadline := time.Now().Add(v.options.RecheckFor)
	for delay := backoff.New(10*time.Millisecond, time.Second); len(left) > 0; {
		last := !time.Now().Before(deadline)
		wrong := make([][]string, len(left))
		var repaired atomic.Int64
		err := eachAtOnce(ctx, left, func(ctx context.Context, i int, uuid string) (err error) {
			wrong[i], err = v.settleCopy(ctx, copier, s, uuid, &repaired)
			return errs.Wrap(err, errs.KindOf(err), "object %s", uuid)
		})
		v.report.Repaired += int(repaired.Load())
		if err != nil {
			return err
		}
		var still []string
		for i, uuid := range left {
			if len(wrong[i]) > 0 {
				still = append(still, uuid)
			}
			if last {
				v.reportCopies(s, uuid, wrong[i])
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

// settleCopy returns the copies of an object that are wrong, and with Repair makes them right.
func (v *verification) settleCopy(ctx context.Context, copier *mapping.Copier, s *store.Store, uuid string,
	repaired *atomic.Int64) (wrong []string, err error) {
	o, err := s.Get(ctx, uuid)
	if errors.Is(err, errs.NotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if wrong, err = s.Miscopied(ctx, o); err != nil || len(wrong) == 0 || !v.options.Repair {
		return wrong, err
	}
	if err := copier.Correct(ctx, s, uuid); err != nil {
		return nil, err
	}
	repaired.Add(1)
	v.options.Tracker.corrected(1)
	return nil, nil
}

// reportCopies adds wrong copies of an object to the report.
func (v *verification) reportCopies(s *store.Store, uuid string, wrong []string) {
	for _, field := range wrong {
		v.report.add([]Difference{{
			Kind: Stale, Target: s.Name(), Holder: uuid, Array: field,
			Detail: "differs from the property of the object that it is a copy of",
		}})
	}
}
