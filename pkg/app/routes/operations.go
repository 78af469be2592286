package routes

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"belfry/config"
	"belfry/internal/backoff"
	"belfry/pkg/app/part"
	"belfry/pkg/app/plan"
	"belfry/pkg/app/serving"
	"belfry/pkg/natsapi"
	"belfry/pkg/pagememory"
	"belfry/pkg/store/idempotent"
)

// How often expired keys of requests are removed, and how many at once.
const (
	forgetInterval = 10 * time.Minute
	forgetAtOnce   = 10_000
)

// Operations serves operations of stores over the bus.
type Operations struct {
	Served  *serving.Current
	Log     *slog.Logger
	Metrics prometheus.Registerer
	Pages   *pagememory.Budget // of lists, over HTTP and over the bus

	running part.Background
}

// Part returns the functions that start, reload and stop it.
func (o *Operations) Part() serving.Part {
	return serving.Part{Name: "operations over the bus", Start: o.start, Reload: o.reload,
		Stop: func(ctx context.Context) error {
			return errors.Join(stopOperations(ctx, o.Served.Now()), o.running.Stop(ctx))
		}}
}

// open makes and starts the server of operations of stores over the bus; before is the server that it replaces, nil for
// none.
func (o *Operations) open(g *serving.Generation, before *natsapi.Server) (err error) {
	options := natsapi.Options{
		Conn: g.Bus.Conn(), Set: g.API.Operations(), Requests: g.Set.Store(config.RequestStore), Version: semantic(),
		Logger: o.Log, Registry: o.Metrics, TombstoneRetention: g.Config.Tombstones, Limits: g.Config.Limits.Bus,
		Pages: o.Pages, Previous: before, Tracing: g.Spans(),
	}
	for _, name := range g.Plan.OnBus() {
		options.Stores = append(options.Stores, g.Set.Store(name))
	}
	if len(options.Stores) > 0 {
		g.Operations, err = natsapi.Start(options)
	}
	return err
}

func (o *Operations) start(_ context.Context, first *serving.Generation) error {
	if err := o.open(first, nil); err != nil {
		return err
	}
	o.running.Every(forgetInterval, func(ctx context.Context) bool { o.forget(ctx); return true })
	return nil
}

// forget removes expired keys of requests.
func (o *Operations) forget(ctx context.Context) {
	keys := idempotent.New(idempotent.Options{Requests: o.Served.Now().Set.Store(config.RequestStore)})
	for more := true; more; {
		n, err := keys.DeleteExpired(ctx, forgetAtOnce)
		if err != nil && ctx.Err() == nil {
			o.Log.Error("removing expired keys of requests failed", "error", err)
		}
		more = n >= forgetAtOnce && err == nil
	}
}

// reload serves the operations of another configuration. They begin on the same connection before those of the previous
// configuration end, so that each request finds a server.
func (o *Operations) reload(ctx context.Context, before, next *serving.Generation) (part.Change, error) {
	if err := o.open(next, before.Operations); err != nil {
		return part.Change{}, err
	}
	return part.Change{
		Apply: func() {
			if next.Operations != nil {
				next.Operations.Begin()
			}
			if before.Operations != nil {
				if err := before.Operations.Retire(context.WithoutCancel(ctx), next.Operations); err != nil {
					o.Log.Warn("for some seconds requests over the bus may be accepted for stores that are no longer "+
						"served there", "error", err)
				}
			}
		},
		Cancel: func() { _ = stopOperations(context.WithoutCancel(ctx), next) },
		Settle: func(ctx context.Context) {
			ctx, cancel := context.WithTimeout(ctx, retireTimeout)
			defer cancel()
			if err := before.Operations.Wait(ctx); err != nil {
				o.Log.Warn("requests over the bus that were in flight at the reload got no reply", "error", err)
			}
		},
		Retire: func(ctx context.Context) {
			_ = backoff.Sleep(ctx, unsubscribeAfter)
			_ = stopOperations(ctx, before)
		},
	}, nil
}

// retireTimeout is how long requests over the bus may still take that are in flight at a reload.
const retireTimeout = natsapi.DefaultTimeout + 5*time.Second

// unsubscribeAfter is how long a server that was replaced passes requests on: the bus may have selected it before.
const unsubscribeAfter = 250 * time.Millisecond

// stopOperations accepts no more operations, and returns when those in flight have their replies.
func stopOperations(ctx context.Context, g *serving.Generation) error {
	if g.Operations == nil {
		return nil
	}
	return g.Operations.Stop(ctx)
}

// semantic returns Version as a semantic version, which services on the bus need.
func semantic() string {
	v, found := strings.CutPrefix(plan.Version(), "v")
	if !found || strings.Count(v, ".") < 2 {
		return "0.0.0"
	}
	return v
}
