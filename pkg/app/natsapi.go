package app

import (
	"context"
	"strings"
	"time"

	"belfry/config"
	"belfry/pkg/app/part"
	"belfry/pkg/app/plan"
	"belfry/pkg/natsapi"
	"belfry/pkg/store/idempotent"
)

// How often keys of requests that have expired are removed, and how many at once.
const (
	forgetInterval = 10 * time.Minute
	forgetAtOnce   = 10_000
)

// newOperations makes what serves operations of stores over the bus, and begins with it; before is what it replaces, nil
// for nothing.
func (a *serving) newOperations(before *natsapi.Server) (err error) {
	o := natsapi.Options{
		Conn: a.bus.Conn(), Requests: a.set.Store(config.RequestStore), Version: semantic(), Logger: a.log,
		Registry: a.registry, TombstoneRetention: a.config.Tombstones, Limits: natsapi.Limits(a.config.Limits.Bus),
		Pages: a.pages, Previous: before, Tracing: a.spans(),
	}
	for _, name := range a.plan.OnBus() {
		o.Stores = append(o.Stores, a.set.Store(name))
	}
	if len(o.Stores) > 0 {
		a.operations, err = natsapi.Start(o)
	}
	return err
}

// serveBus serves operations of stores over the bus.
func (a *serving) serveBus(context.Context) error {
	if err := a.newOperations(nil); err != nil {
		return err
	}
	a.every(forgetInterval, "the removing of old requests", func(ctx context.Context) bool {
		keys := idempotent.New(idempotent.Options{Requests: a.now().set.Store(config.RequestStore)})
		for more := true; more; {
			n, err := keys.DeleteExpired(ctx, forgetAtOnce)
			if err != nil && ctx.Err() == nil {
				a.log.Error("removing expired keys of requests", "error", err)
			}
			more = n >= forgetAtOnce && err == nil
		}
		return true
	})
	a.onStop("operations over the bus", func(ctx context.Context) error { return a.now().stopOperations(ctx) })
	return nil
}

// reloadOperations has the operations of another configuration served. They begin on the same connection before those of the
// configuration before end, so that no request finds nobody.
func reloadOperations(ctx context.Context, before, next *serving) (part.Change, error) {
	if err := next.newOperations(before.operations); err != nil {
		return part.Change{}, err
	}
	return part.Change{
		Apply: func() {
			if before.operations == nil {
				return
			}
			if err := before.operations.Retire(context.WithoutCancel(ctx)); err != nil {
				next.log.Warn("for some seconds requests over the bus may meet the configuration before", "error", err)
			}
		},
		Cancel: func() { _ = next.stopOperations(context.WithoutCancel(ctx)) },
		Retire: func(ctx context.Context) {
			ctx, cancel := context.WithTimeout(ctx, retireTimeout)
			defer cancel()
			if err := before.stopOperations(ctx); err != nil {
				next.log.Warn("requests over the bus that the reload found in flight have no reply", "error", err)
			}
		},
	}, nil
}

// retireTimeout is how long requests over the bus that a reload finds in flight may take.
const retireTimeout = natsapi.DefaultTimeout + 5*time.Second

// stopOperations accepts no more operations, and returns when those in flight have their replies.
func (a *serving) stopOperations(ctx context.Context) error {
	if a.operations == nil {
		return nil
	}
	return a.operations.Stop(ctx)
}

// semantic returns Version as a semantic version, which services on the bus need.
func semantic() string {
	v, found := strings.CutPrefix(plan.Version(), "v")
	if !found || strings.Count(v, ".") < 2 {
		return "0.0.0"
	}
	return v
}

// openOverBus returns the stores whose policies a client can evade over the bus, since the embedded bus
// does not authenticate its clients.
func (a *serving) openOverBus() []string {
	if b := a.config.Bus; len(b.URL) > 0 || b.Listen == "" || b.Config != "" {
		return nil
	}
	var all []string
	for _, name := range a.plan.OnBus() {
		s := a.config.Stores[name]
		if s.Policy != (config.Policy{}) || s.Expose == nil || s.Expose.Restrict != (config.Restrict{}) {
			all = append(all, name)
		}
	}
	return all
}
