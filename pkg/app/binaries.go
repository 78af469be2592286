package app

import (
	"context"
	"maps"
	"slices"
	"time"

	"belfry/listeners/sweep"
	"belfry/pkg/api/files"
	"belfry/pkg/app/open"
	"belfry/pkg/listener"
)

func (a *serving) openStorages(ctx context.Context) error {
	storages, err := open.Storages(ctx, a.plan)
	if err != nil {
		return err
	}
	a.storages, a.binaries = storages, open.Services(a.plan, storages, a.set, a.registry, nil)
	a.onStop("the storages of binaries", func(context.Context) error { return open.CloseStorages(storages) })
	return nil
}

// startSweep starts the sweeper, which deletes contents that no object references.
func (a *serving) startSweep(context.Context) error {
	if len(a.binaries) == 0 {
		return nil
	}
	w, err := sweep.NewWorker(open.InOrder(a.binaries), a.log)
	if err != nil {
		return err
	}
	a.sweeper = w
	spec := a.plan.SweepSpec()
	spec.Handler = func(ctx context.Context, e *listener.Event) error {
		now, done := a.use()
		defer done()
		return now.sweeper.Handle(ctx, &e.Envelope)
	}
	a.startListeners(spec)
	grace := time.Duration(1<<63 - 1)
	for _, b := range a.config.Binaries {
		grace = min(grace, b.Grace)
	}
	again := func(what string, do func(*sweep.Worker, context.Context) error) func(context.Context) bool {
		return func(ctx context.Context) bool {
			now, done := a.use()
			defer done()
			if err := do(now.sweeper, ctx); err != nil && ctx.Err() == nil {
				a.log.Error(what, "error", err)
			}
			return true
		}
	}
	a.every(min(sweep.DueInterval, grace), "the sweeping of contents", again("sweeping contents", (*sweep.Worker).SweepDue))
	check := again("checking contents without records", (*sweep.Worker).SweepAll)
	// Also soon after each start, since a belfry that often restarts would never reach the long interval,
	// and a crash may have left the content of an upload.
	a.every(min(sweep.DueInterval, grace), "the first check of all contents", func(ctx context.Context) bool {
		check(ctx)
		return false
	})
	a.every(min(sweep.FullInterval, 10*grace), "the check of all contents", check)
	a.every(cleanInterval, "the removal of old quotas", again("removing old records of quotas", func(_ *sweep.Worker, ctx context.Context) error { return a.cleanQuotas(ctx) }))
	return nil
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

func (a *serving) apiFiles() []files.Options {
	var all []files.Options
	for _, name := range slices.Sorted(maps.Keys(a.binaries)) {
		b := a.config.Binaries[name]
		mounted := files.Options{Service: a.binaries[name], Memory: a.uploads, URL: b.URL, Restrict: files.Restrict(b.Restrict)}
		if b.S3 != nil {
			mounted.Presign = b.S3.Presign
		}
		all = append(all, mounted)
	}
	return all
}
