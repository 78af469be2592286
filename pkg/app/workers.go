package app

import (
	"context"
	"sync"
	"time"

	"belfry/listeners/cascade"
	"belfry/listeners/mapping"
	"belfry/listeners/mapping/route"
	"belfry/pkg/api/applied"
	"belfry/pkg/app/part"
	"belfry/pkg/event"
	"belfry/pkg/listener"
	protocol "belfry/pkg/mapping"
	"belfry/pkg/store"
)

// workers are the listeners of mappings and cascades.
type workers struct {
	app       *App
	listeners *listeners
	pace      *protocol.Pace
	onFull    func(m *store.Mapping, target string)
	mapper    *mapping.Worker
	sharing   *route.Group
}

func newWorkers(a *App) *workers { return &workers{app: a, listeners: newListeners(a)} }

func (w *workers) part() part.Part[*serving] {
	return part.Part[*serving]{Name: "the workers", Start: w.start, Reload: w.reload, Stop: w.stop}
}

// make makes the workers of a configuration, beside those that share targets now.
func (w *workers) make(g *serving, sharing *route.Group) {
	g.sharing = sharing
	g.mapper = mapping.NewWorker(g.set, mapping.Options{OnFull: w.onFull, Sharing: sharing, Pace: w.pace})
	g.cascader = cascade.NewWorker(g.set, cascade.Options{})
}

func (w *workers) start(_ context.Context, first *serving) error {
	w.onFull, w.pace = w.app.countFull(), protocol.NewPace(0)
	w.make(first, w.app.newSharing(first))
	w.mapper, w.sharing = first.mapper, first.sharing
	if w.sharing != nil {
		w.sharing.Start()
	}
	w.listeners.run(first, w.specs(first))
	return nil
}

// reload makes the workers of another configuration. Those with other mappings share targets among themselves.
func (w *workers) reload(ctx context.Context, before, next *serving) (part.Change, error) {
	sharing := before.sharing
	another := sharingDefinition(before) != sharingDefinition(next)
	if another {
		sharing = w.app.newSharing(next)
	}
	w.make(next, sharing)
	change, err := w.listeners.reload(ctx, next, w.specs(before), w.specs(next))
	if err != nil {
		return part.Change{}, err
	}
	listen := change.Apply
	change.Apply = func() {
		w.mapper, w.sharing = next.mapper, sharing
		if another && sharing != nil {
			sharing.Start()
		}
		listen()
	}
	change.Retire = func(ctx context.Context) {
		former := before.sharing
		if !another {
			former = nil
		}
		closeMapper(ctx, before.mapper, former)
	}
	return change, nil
}

func (w *workers) stop(ctx context.Context) error {
	err := w.listeners.stop(ctx)
	if w.mapper != nil {
		closeMapper(ctx, w.mapper, w.sharing)
	}
	return err
}

// specs are the listeners of the roles of this process.
func (w *workers) specs(g *serving) (mine []listener.Spec) {
	maps, cascades := g.plan.MappingSpec(), g.plan.CascadeSpec()
	applyMaps := applied.Reporting(w.app.bus.Conn(), mapping.Name, func(ctx context.Context, e *event.Envelope) error {
		now, done := w.app.use()
		defer done()
		return now.mapper.Handle(ctx, e)
	})
	maps.Handler = func(ctx context.Context, e *listener.Event) error { return applyMaps(ctx, &e.Envelope, 0) } // a write of an array causes nothing
	applyCascades := applied.Reporting(w.app.bus.Conn(), cascade.Name, func(ctx context.Context, e *event.Envelope) error {
		now, done := w.app.use()
		defer done()
		return now.cascader.Handle(ctx, e)
	})
	cascades.Handler = func(ctx context.Context, e *listener.Event) error { return applyCascades(ctx, &e.Envelope, e.Attempt) }
	for _, spec := range []listener.Spec{maps, cascades} {
		if w.app.has(spec.Name) {
			mine = append(mine, spec)
		}
	}
	return mine
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
