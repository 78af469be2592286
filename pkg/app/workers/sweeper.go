package workers

import (
	"context"
	"time"

	"belfry/config"
	"belfry/listeners/sweep"
	"belfry/pkg/app/open"
	"belfry/pkg/app/part"
	"belfry/pkg/app/serving"
	"belfry/pkg/listener"
)

// How often old records of quotas are removed, and how many at once.
const (
	quotaInterval = 10 * time.Minute
	quotasAtOnce  = 10_000
)

// Sweeper deletes contents that no object references.
type Sweeper struct {
	Runner
	Served *serving.Current

	background part.Background
}

// Part returns the functions that start, reload and stop it.
func (w *Sweeper) Part() serving.Part {
	return serving.Part{Name: "the sweeper", Start: w.start, Reload: w.reload, Stop: func(ctx context.Context) error {
		if err := w.background.Stop(ctx); err != nil {
			return err
		}
		return w.end(ctx)
	}}
}

// specs returns the listener of the sweeper, which does nothing without binaries.
func (w *Sweeper) specs(g *serving.Generation) []listener.Spec {
	spec := g.Plan.SweepSpec()
	spec.Handler = func(ctx context.Context, e *listener.Event) error {
		now, done := w.Served.Use()
		defer done()
		if now.Sweeper == nil { // a reload has removed the last service
			return nil
		}
		return now.Sweeper.Handle(ctx, &e.Envelope)
	}
	return []listener.Spec{spec}
}

func (w *Sweeper) make(g *serving.Generation) (err error) {
	if len(g.Binaries) > 0 {
		g.Sweeper, err = sweep.NewWorker(open.InOrder(g.Binaries), w.Log)
	}
	return err
}

func (w *Sweeper) start(_ context.Context, first *serving.Generation) error {
	if err := w.make(first); err != nil {
		return err
	}
	w.run(first, w.specs(first))
	due := func() time.Duration { return min(sweep.DueInterval, graceOf(w.Served.Now().Config)) }
	check := w.again("checking contents without records", (*sweep.Worker).SweepAll)
	w.background.Repeat(due, w.again("sweeping contents", (*sweep.Worker).SweepDue))
	// Also soon after each start: a belfry that often restarts would never reach the long interval, and a crash may
	// have left the content of an upload.
	w.background.Repeat(due, func(ctx context.Context) bool {
		check(ctx)
		return false
	})
	w.background.Repeat(func() time.Duration { return min(sweep.FullInterval, 10*graceOf(w.Served.Now().Config)) },
		check)
	w.background.Every(quotaInterval, w.again("removing old records of quotas",
		func(_ *sweep.Worker, ctx context.Context) error { return w.cleanQuotas(ctx) }))
	return nil
}

func (w *Sweeper) reload(ctx context.Context, before, next *serving.Generation) (part.Change, error) {
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

// again calls a function of the current sweeper.
func (w *Sweeper) again(what string, do func(*sweep.Worker, context.Context) error) func(context.Context) bool {
	return func(ctx context.Context) bool {
		now, done := w.Served.Use()
		defer done()
		if now.Sweeper == nil {
			return true
		}
		if err := do(now.Sweeper, ctx); err != nil && ctx.Err() == nil {
			w.Log.Error(what, "error", err)
		}
		return true
	}
}

func (w *Sweeper) cleanQuotas(ctx context.Context) error {
	for _, s := range open.InOrder(w.Served.Now().Binaries) {
		for n := quotasAtOnce; n >= quotasAtOnce; {
			var err error
			if n, err = s.DeleteExpired(ctx, quotasAtOnce); err != nil {
				return err
			}
		}
	}
	return nil
}
