package verify

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"belfry/internal/backoff"
	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/store"
)

// candidate is a target whose array may differ from the objects.
type candidate struct {
	*check
	target  string
	sources []string // the objects that named it

	found    []Difference // by the last comparison
	repaired bool         // by this process, in part at least
}

// settle reads candidates again, all of them in each round, until they are correct or
// RecheckFor has passed, and reports the differences that are left. With Repair each
// round corrects them: since the workers' protocol does it, workers may run. It
// reports whether it has deleted objects.
func (v *verification) settle(ctx context.Context, candidates []*candidate) (deleted bool, err error) {
	v.options.Tracker.settling(len(candidates), v.options.Repair)
	deadline := time.Now().Add(v.options.RecheckFor)
	left := slices.Clone(candidates)
	var deletes atomic.Bool
	for delay := backoff.New(10*time.Millisecond, time.Second); ; {
		last := !time.Now().Before(deadline)
		if err := v.round(ctx, left, &deletes); err != nil {
			return false, err
		}
		left = slices.DeleteFunc(left, func(c *candidate) bool { return len(c.found) == 0 })
		if len(left) == 0 || last {
			break
		}
		if err := delay.Wait(ctx); err != nil {
			return false, err
		}
	}
	for _, c := range candidates {
		if c.repaired && len(c.found) == 0 {
			v.report.Repaired++
		}
	}
	for _, c := range left {
		v.report.add(c.found)
	}
	slices.SortFunc(v.report.Full, func(a, b Full) int {
		return cmp.Or(cmp.Compare(a.Target, b.Target), cmp.Compare(a.Array, b.Array), cmp.Compare(a.Holder, b.Holder))
	})
	return deletes.Load(), nil
}

// round compares candidates, and with Repair corrects them.
func (v *verification) round(ctx context.Context, candidates []*candidate, deletes *atomic.Bool) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(atOnce)
	for _, c := range candidates {
		g.Go(func() error {
			err := c.compareAgain(ctx)
			if err == nil && v.options.Repair && len(c.found) > 0 {
				if slices.ContainsFunc(c.found, func(d Difference) bool { return d.Kind == Undeleted }) {
					deletes.Store(true)
				}
				err = c.repair(ctx)
			}
			if err == nil && len(c.found) == 0 {
				v.options.Tracker.settled.Add(1)
			}
			return errs.Wrap(err, errs.KindOf(err), "verifying %s %s", c.m.Target, c.target)
		})
	}
	return g.Wait()
}

func (c *candidate) compareAgain(ctx context.Context) (err error) {
	c.found, err = c.differences(ctx, c.target, c.sources)
	return err
}

// repair corrects the differences that were found. One that can't be corrected is not an
// error: it stays a difference, with the reason, and the others are repaired.
func (c *candidate) repair(ctx context.Context) error {
	for _, d := range c.found {
		if d.UUID != "" && !slices.Contains(c.sources, d.UUID) {
			c.sources = append(c.sources, d.UUID)
		}
	}
	ctx = store.WithCall(ctx, store.Call{Origin: event.OriginMapping})
	err := c.reconciler.Reconcile(ctx, c.m, c.target, c.sources)
	switch {
	case err == nil:
		c.repaired = true
		c.tracker.repaired.Add(1)
		return c.compareAgain(ctx)
	case ctx.Err() != nil || errors.Is(err, errs.Unavailable) || errors.Is(err, errs.Canceled):
		return err
	}
	for i := range c.found {
		c.found[i].Detail = "it can't be repaired: " + err.Error()
	}
	return nil
}
