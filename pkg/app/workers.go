package app

import (
	"context"
	"sync"
	"time"

	"belfry/listeners/cascade"
	"belfry/listeners/mapping"
	"belfry/pkg/applied"
	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/listener"
	"belfry/pkg/store"
)

// How many events a worker has in hand. The mapping worker groups them by
// target, so many of them cost one write.
const (
	mappingConcurrency = 1024
	cascadeConcurrency = 16
)

// workerAckWait is how soon the events that a process had in hand when it died
// go to another one, or to the same after its restart. A worker that is alive
// says so more often than that.
const workerAckWait = 10 * time.Second

// startWorkers starts the listeners that keep copies and cascades.
func (a *App) startWorkers(context.Context) error {
	mapper := mapping.NewWorker(a.set, mapping.Options{OnFull: a.countFull()})
	a.onStop("the mapping worker", func(context.Context) error { mapper.Close(); return nil })
	cascader := cascade.NewWorker(a.set, cascade.Options{})

	maps, cascades := a.plan.mappingSpec(), a.plan.cascadeSpec()
	maps.Handler = a.reporting(mapping.Name, mapper.Handle)
	cascades.Handler = a.reporting(cascade.Name, cascader.Handle)
	var mine []listener.Spec
	for _, spec := range []listener.Spec{maps, cascades} {
		if a.has(spec.Name) {
			mine = append(mine, spec)
		}
	}
	a.startListeners(mine...)
	return nil
}

// reporting makes a listener's handler that requests can wait for.
func (a *App) reporting(worker string, handle func(context.Context, *event.Envelope) error) listener.Handler {
	report := applied.Reporting(a.bus.Conn(), worker, handle)
	return func(ctx context.Context, e *listener.Event) error { return report(ctx, &e.Envelope) }
}

// startListeners runs listeners side by side. They stop side by side as well:
// what they hold is handled or, when time is over, left to come again.
func (a *App) startListeners(specs ...listener.Spec) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	for _, spec := range specs {
		if len(spec.Filters) == 0 {
			continue
		}
		spec.OnSetupError = a.lacks.note
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
			return errs.Wrap(ctx.Err(), errs.Canceled, "events are still in hand; they come again")
		}
	})
}

// Tombstones are purged a bounded number at a time.
const (
	purgeInterval = time.Minute
	purgeAtOnce   = 10_000
)

// startJanitor purges tombstones that have been kept long enough.
func (a *App) startJanitor(context.Context) error {
	a.every(purgeInterval, "the janitor", func(ctx context.Context) bool {
		a.purge(ctx)
		return true
	})
	return nil
}

// every does something again and again until it returns false, or the app
// stops.
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
	before := time.Now().Add(-a.config.Tombstones)
	n, err := a.set.Purge(ctx, store.RevisionAt(before), purgeAtOnce)
	if err != nil && ctx.Err() == nil {
		a.log.Error("purging tombstones", "error", err)
	}
	if n > 0 {
		a.log.Debug("tombstones purged", "count", n)
	}
}
