package app

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"belfry/config"
	"belfry/pkg/api/pagememory"
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

// operations serves operations of stores over the bus.
type operations struct {
	served  *current
	log     *slog.Logger
	metrics prometheus.Registerer
	pages   *pagememory.Budget // of lists, over HTTP and over the bus

	running part.Background
}

// part is the part of a process.
func (o *operations) part() servedPart {
	return servedPart{Name: "operations over the bus", Start: o.start, Reload: o.reload, Stop: func(ctx context.Context) error {
		return errors.Join(stopOperations(ctx, o.served.now()), o.running.Stop(ctx))
	}}
}

// open makes what serves operations of stores over the bus, and begins with it; before is what it replaces, nil
// for nothing.
func (o *operations) open(g *generation, before *natsapi.Server) (err error) {
	options := natsapi.Options{
		Conn: g.bus.Conn(), Requests: g.set.Store(config.RequestStore), Version: semantic(), Logger: o.log,
		Registry: o.metrics, TombstoneRetention: g.config.Tombstones, Limits: natsapi.Limits(g.config.Limits.Bus),
		Pages: o.pages, Previous: before, Tracing: g.spans(),
	}
	for _, name := range g.plan.OnBus() {
		options.Stores = append(options.Stores, g.set.Store(name))
	}
	if len(options.Stores) > 0 {
		g.operations, err = natsapi.Start(options)
	}
	return err
}

func (o *operations) start(_ context.Context, first *generation) error {
	if err := o.open(first, nil); err != nil {
		return err
	}
	o.running.Every(forgetInterval, func(ctx context.Context) bool { o.forget(ctx); return true })
	return nil
}

// forget removes keys of requests that have expired.
func (o *operations) forget(ctx context.Context) {
	keys := idempotent.New(idempotent.Options{Requests: o.served.now().set.Store(config.RequestStore)})
	for more := true; more; {
		n, err := keys.DeleteExpired(ctx, forgetAtOnce)
		if err != nil && ctx.Err() == nil {
			o.log.Error("removing expired keys of requests", "error", err)
		}
		more = n >= forgetAtOnce && err == nil
	}
}

// reload has the operations of another configuration served. They begin on the same connection before those of the
// configuration before end, so that no request finds nobody.
func (o *operations) reload(ctx context.Context, before, next *generation) (part.Change, error) {
	if err := o.open(next, before.operations); err != nil {
		return part.Change{}, err
	}
	return part.Change{
		Apply: func() {
			if before.operations == nil {
				return
			}
			if err := before.operations.Retire(context.WithoutCancel(ctx)); err != nil {
				o.log.Warn("for some seconds requests over the bus may meet the configuration before", "error", err)
			}
		},
		Cancel: func() { _ = stopOperations(context.WithoutCancel(ctx), next) },
		Retire: func(ctx context.Context) {
			ctx, cancel := context.WithTimeout(ctx, retireTimeout)
			defer cancel()
			if err := stopOperations(ctx, before); err != nil {
				o.log.Warn("requests over the bus that the reload found in flight have no reply", "error", err)
			}
		},
	}, nil
}

// retireTimeout is how long requests over the bus that a reload finds in flight may take.
const retireTimeout = natsapi.DefaultTimeout + 5*time.Second

// stopOperations accepts no more operations, and returns when those in flight have their replies.
func stopOperations(ctx context.Context, g *generation) error {
	if g.operations == nil {
		return nil
	}
	return g.operations.Stop(ctx)
}

// semantic returns Version as a semantic version, which services on the bus need.
func semantic() string {
	v, found := strings.CutPrefix(plan.Version(), "v")
	if !found || strings.Count(v, ".") < 2 {
		return "0.0.0"
	}
	return v
}
