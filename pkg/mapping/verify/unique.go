package verify

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"belfry/internal/backoff"
	"belfry/pkg/errs"
	"belfry/pkg/store"
)

// Unique is the result of a verification of unique fields.
type Unique struct {
	Objects int64 `json:"objects"` // read, of stores with unique fields
	Claims  int64 `json:"claims"`  // records of values

	// Stale are claims of values that no object has, which writes left that a crash interrupted. They do no harm, and
	// a repair removes them.
	Stale int64 `json:"stale"`

	// Findings are objects whose value another object has too, which a person has to decide about, and objects without
	// a claim for their value, which a repair makes. At most MaxDifferences.
	Findings []store.UniqueFinding `json:"findings"`
	More     int                   `json:"more,omitempty"` // findings beyond MaxDifferences

	Claimed int `json:"claimed,omitempty"` // claims that a repair made
	// stores that are not compared: their values are being collected, or are when belfry starts
	Waiting []string `json:"waiting,omitempty"`
}

// unique compares the values of unique fields with their claims.
func (v *verification) unique(ctx context.Context) error {
	stores := v.set.Stores()
	for _, name := range slices.Sorted(maps.Keys(stores)) {
		s := stores[name]
		claims := s.Claims()
		if claims == nil {
			continue
		}
		if v.report.Unique == nil {
			v.report.Unique = &Unique{Findings: []store.UniqueFinding{}}
		}
		if !claims.Trusted() && !v.options.Repair {
			v.report.Unique.Waiting = append(v.report.Unique.Waiting, name)
			continue
		}
		if err := v.uniqueOf(ctx, s, claims); err != nil {
			return errs.Wrap(err, errs.KindOf(err), "verifying the unique fields of %s", name)
		}
	}
	return nil
}

func (v *verification) uniqueOf(ctx context.Context, s *store.Store, claims *store.Claims) error {
	if err := backoff.Sleep(ctx, s.IndexLag()); err != nil {
		return errs.Wrap(err, errs.Canceled, "the verification was canceled")
	}
	u := v.report.Unique
	var mu sync.Mutex
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(atOnce)
	var failed error
	for o, err := range s.All(gctx, pageSize) {
		if failed = err; err != nil {
			break
		}
		u.Objects++
		g.Go(func() error {
			made, found, err := v.claims(gctx, claims, o.UUID)
			mu.Lock()
			defer mu.Unlock()
			u.Claimed += made
			for _, f := range found {
				if len(u.Findings) < MaxDifferences {
					u.Findings = append(u.Findings, f)
				} else {
					u.More++
				}
			}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	if failed != nil {
		return failed
	}
	slices.SortStableFunc(u.Findings, func(a, b store.UniqueFinding) int { // those of one object are in order
		return cmp.Or(strings.Compare(a.Store, b.Store), strings.Compare(a.UUID, b.UUID))
	})
	all, stale, err := claims.Sweep(ctx, v.options.Repair)
	u.Claims += all
	u.Stale += stale
	return err
}

func (v *verification) claims(ctx context.Context, of *store.Claims,
	uuid string) (made int, found []store.UniqueFinding, err error) {
	if v.options.Repair {
		return of.Make(ctx, uuid)
	}
	found, err = of.Check(ctx, uuid)
	return 0, found, err
}
