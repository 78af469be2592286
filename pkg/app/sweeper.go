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

// sweeper deletes contents that no object references.
type sweeper struct {
	app       *App
	listeners *listeners
	part.Background
}

func newSweeper(a *App) *sweeper { return &sweeper{app: a, listeners: newListeners(a)} }

func (w *sweeper) part() part.Part[*serving] {
	return part.Part[*serving]{Name: "the sweeper", Start: w.start, Reload: w.reload, Stop: func(ctx context.Context) error {
		if err := w.Stop(ctx); err != nil {
			return err
		}
		return w.listeners.stop(ctx)
	}}
}

// specs returns what the sweeper receives; nothing without binaries.
func (w *sweeper) specs(g *serving) []listener.Spec {
	spec := g.plan.SweepSpec()
	spec.Handler = func(ctx context.Context, e *listener.Event) error {
		now, done := w.app.use()
		defer done()
		if now.sweeper == nil { // a reload has removed the last service
			return nil
		}
		return now.sweeper.Handle(ctx, &e.Envelope)
	}
	return []listener.Spec{spec}
}

func (w *sweeper) make(g *serving) (err error) {
	if len(g.binaries) > 0 {
		g.sweeper, err = sweep.NewWorker(open.InOrder(g.binaries), w.app.log)
	}
	return err
}

func (w *sweeper) start(_ context.Context, first *serving) error {
	if err := w.make(first); err != nil {
		return err
	}
	w.listeners.run(first, w.specs(first))
	due := func() time.Duration { return min(sweep.DueInterval, graceOf(w.app.now().config)) }
	check := w.again("checking contents without records", (*sweep.Worker).SweepAll)
	w.Repeat(due, w.again("sweeping contents", (*sweep.Worker).SweepDue))
	// Also soon after each start, since a belfry that often restarts would never reach the long interval,
	// and a crash may have left the content of an upload.
	w.Repeat(due, func(ctx context.Context) bool {
		check(ctx)
		return false
	})
	w.Repeat(func() time.Duration { return min(sweep.FullInterval, 10*graceOf(w.app.now().config)) }, check)
	w.Every(cleanInterval, w.again("removing old records of quotas", func(_ *sweep.Worker, ctx context.Context) error { return w.app.cleanQuotas(ctx) }))
	return nil
}

func (w *sweeper) reload(ctx context.Context, before, next *serving) (part.Change, error) {
	if err := w.make(next); err != nil {
		return part.Change{}, err
	}
	return w.listeners.reload(ctx, next, w.specs(before), w.specs(next))
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
		now, done := w.app.use()
		defer done()
		if now.sweeper == nil {
			return true
		}
		if err := do(now.sweeper, ctx); err != nil && ctx.Err() == nil {
			w.app.log.Error(what, "error", err)
		}
		return true
	}
}

func (a *App) cleanQuotas(ctx context.Context) error {
	for _, s := range open.InOrder(a.now().binaries) {
		for n := cleanAtOnce; n >= cleanAtOnce; {
			var err error
			if n, err = s.DeleteExpired(ctx, cleanAtOnce); err != nil {
				return err
			}
		}
	}
	return nil
}
