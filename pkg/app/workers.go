package app

import (
	"context"
	"sync"
	"time"

	"belfry/listeners/cascade"
	"belfry/listeners/mapping"
	"belfry/pkg/api/applied"
	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/listener"
	protocol "belfry/pkg/mapping"
	"belfry/pkg/store"
)

// newWorkers makes the workers of mappings and cascades.
func (a *serving) newWorkers() {
	a.mapper = mapping.NewWorker(a.set, mapping.Options{OnFull: a.onFull, Sharing: a.sharing, Pace: a.pace})
	a.cascader = cascade.NewWorker(a.set, cascade.Options{})
}

// startWorkers starts the listeners of mappings and cascades.
func (a *serving) startWorkers(context.Context) error {
	a.onFull = a.countFull()
	a.pace = protocol.NewPace(0)
	a.newSharing()
	a.newWorkers()
	a.onStop("the mapping worker", a.stopMapping)
	a.startSharing()

	maps, cascades := a.plan.MappingSpec(), a.plan.CascadeSpec()
	applyMaps := applied.Reporting(a.bus.Conn(), mapping.Name, func(ctx context.Context, e *event.Envelope) error {
		now, done := a.use()
		defer done()
		return now.mapper.Handle(ctx, e)
	})
	maps.Handler = func(ctx context.Context, e *listener.Event) error { return applyMaps(ctx, &e.Envelope, 0) } // a write of an array causes nothing
	applyCascades := applied.Reporting(a.bus.Conn(), cascade.Name, func(ctx context.Context, e *event.Envelope) error {
		now, done := a.use()
		defer done()
		return now.cascader.Handle(ctx, e)
	})
	cascades.Handler = func(ctx context.Context, e *listener.Event) error { return applyCascades(ctx, &e.Envelope, e.Attempt) }
	var mine []listener.Spec
	for _, spec := range []listener.Spec{maps, cascades} {
		if a.has(spec.Name) {
			mine = append(mine, spec)
		}
	}
	a.startListeners(mine...)
	return nil
}

// startListeners runs listeners concurrently. They also stop concurrently: the events that they hold are
// handled, or redelivered later if the timeout ends first.
func (a *App) startListeners(specs ...listener.Spec) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	for _, spec := range specs {
		if len(spec.Filters) == 0 {
			continue
		}
		spec.OnSetupError = a.missing.set
		a.traceEvents(&spec)
		running.Go(func() {
			if err := listener.Run(ctx, a.bus, a.log, spec); err != nil && ctx.Err() == nil {
				a.fail(errs.Wrap(err, errs.KindOf(err), "listener %s has ended", spec.Name))
			}
		})
	}
	a.onStop("the listeners", func(ctx context.Context) error {
		cancel()
		done := make(chan struct{})
		go func() {
			running.Wait()
			close(done)
		}()
		select {
		case <-done:
			return nil
		case <-ctx.Done():
			return errs.Wrap(ctx.Err(), errs.Canceled, "events are still in flight; they are redelivered later")
		}
	})
}

// Tombstones are purged in batches.
const (
	purgeInterval = time.Minute
	purgeAtOnce   = 10_000
)

// startJanitor purges tombstones whose retention is over.
func (a *App) startJanitor(context.Context) error {
	a.every(purgeInterval, "the janitor", func(ctx context.Context) bool {
		a.purge(ctx)
		return true
	})
	return nil
}

// every calls do at an interval until it returns false or the app stops.
func (a *App) every(interval time.Duration, name string, do func(ctx context.Context) bool) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		tick := time.NewTicker(interval)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				if !do(ctx) {
					return
				}
			}
		}
	})
	a.onStop(name, func(context.Context) error {
		cancel()
		running.Wait()
		return nil
	})
}

func (a *App) purge(ctx context.Context) {
	now := a.now()
	before := time.Now().Add(-now.config.Tombstones)
	n, err := now.set.Purge(ctx, store.RevisionAt(before), purgeAtOnce)
	if err != nil && ctx.Err() == nil {
		a.log.Error("purging tombstones", "error", err)
	}
	if n > 0 {
		a.log.Debug("tombstones purged", "count", n)
	}
}
