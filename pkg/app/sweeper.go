package app

import (
	"context"
	"time"

	"belfry/config"
	"belfry/listeners/sweep"
	"belfry/pkg/app/open"
	"belfry/pkg/app/part"
	"belfry/pkg/listener"
)

// How often old records of quotas are removed, and how many at once.
const (
	quotaInterval = 10 * time.Minute
	quotasAtOnce  = 10_000
)

// sweeper deletes contents that no object references.
type sweeper struct {
	listeners
	served *current

	background part.Background
}

// part is the part of a process.
func (w *sweeper) part() servedPart {
	return servedPart{Name: "the sweeper", Start: w.start, Reload: w.reload, Stop: func(ctx context.Context) error {
		if err := w.background.Stop(ctx); err != nil {
			return err
		}
		return w.end(ctx)
	}}
}

// specs returns what the sweeper receives; nothing without binaries.
func (w *sweeper) specs(g *generation) []listener.Spec {
	spec := g.plan.SweepSpec()
	spec.Handler = func(ctx context.Context, e *listener.Event) error {
		now, done := w.served.use()
		defer done()
		if now.sweeper == nil { // a reload has removed the last service
			return nil
		}
		return now.sweeper.Handle(ctx, &e.Envelope)
	}
	return []listener.Spec{spec}
}

func (w *sweeper) make(g *generation) (err error) {
	if len(g.binaries) > 0 {
		g.sweeper, err = sweep.NewWorker(open.InOrder(g.binaries), w.log)
	}
	return err
}

func (w *sweeper) start(_ context.Context, first *generation) error {
	if err := w.make(first); err != nil {
		return err
	}
	w.run(first, w.specs(first))
	due := func() time.Duration { return min(sweep.DueInterval, graceOf(w.served.now().config)) }
	check := w.again("checking contents without records", (*sweep.Worker).SweepAll)
	w.background.Repeat(due, w.again("sweeping contents", (*sweep.Worker).SweepDue))
	// Also soon after each start, since a belfry that often restarts would never reach the long interval,
	// and a crash may have left the content of an upload.
	w.background.Repeat(due, func(ctx context.Context) bool {
		check(ctx)
		return false
	})
	w.background.Repeat(func() time.Duration { return min(sweep.FullInterval, 10*graceOf(w.served.now().config)) }, check)
	w.background.Every(quotaInterval, w.again("removing old records of quotas", func(_ *sweep.Worker, ctx context.Context) error { return w.cleanQuotas(ctx) }))
	return nil
}

func (w *sweeper) reload(ctx context.Context, before, next *generation) (part.Change, error) {
	if err := w.make(next); err != nil {
		return part.Change{}, err
	}
	return w.change(ctx, before, next, w.specs(before), w.specs(next))
}

// graceOf is the shortest time for which a service keeps contents.
func graceOf(c *config.Config) time.Duration {
	grace := sweep.FullInterval
	for _, b := range c.Binaries {
		grace = min(grace, b.Grace)
	}
	return grace
}

// again calls a function of the sweeper that is current then.
func (w *sweeper) again(what string, do func(*sweep.Worker, context.Context) error) func(context.Context) bool {
	return func(ctx context.Context) bool {
		now, done := w.served.use()
		defer done()
		if now.sweeper == nil {
			return true
		}
		if err := do(now.sweeper, ctx); err != nil && ctx.Err() == nil {
			w.log.Error(what, "error", err)
		}
		return true
	}
}

func (w *sweeper) cleanQuotas(ctx context.Context) error {
	for _, s := range open.InOrder(w.served.now().binaries) {
		for n := quotasAtOnce; n >= quotasAtOnce; {
			var err error
			if n, err = s.DeleteExpired(ctx, quotasAtOnce); err != nil {
				return err
			}
		}
	}
	return nil
}
