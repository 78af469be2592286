package app

import (
	"context"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"

	"belfry/pkg/app/part"
	"belfry/pkg/app/plan"
	"belfry/pkg/bus"
	"belfry/pkg/bus/embedded"
	"belfry/pkg/store"
)

// connection connects to the bus, or runs the one that is embedded.
type connection struct {
	log     *slog.Logger
	metrics prometheus.Registerer

	bus *bus.Bus // nil until it is open
}

// part is the part of a process.
func (c *connection) part() servedPart {
	return servedPart{Name: "the bus", Start: c.start, Reload: c.reload, Stop: func(ctx context.Context) error {
		if c.bus == nil {
			return nil
		}
		return c.bus.Close(ctx)
	}}
}

func (c *connection) start(ctx context.Context, first *generation) error {
	o, err := first.plan.BusOptions()
	if err != nil {
		return err
	}
	o.Logger = c.log
	if o.URL == "" {
		server := plan.EmbeddedBus(first.config)
		server.Logger = c.log
		o.Server = embedded.New(server)
	}
	if c.bus, err = bus.Open(ctx, o); err != nil {
		return err
	}
	first.bus = c.bus
	c.metrics.MustRegister(letters(c.bus))
	return nil
}

// reload has the bus as another configuration says: its log's limits, and what a next connection proves who it is with.
func (c *connection) reload(ctx context.Context, before, next *generation) (part.Change, error) {
	was, err := before.plan.BusOptions()
	if err != nil {
		return part.Change{}, err
	}
	is, err := next.plan.BusOptions()
	if err != nil {
		return part.Change{}, err
	}
	change := part.Change{Apply: func() { c.bus.SetAuth(is.Auth) }}
	if was.Events != is.Events || was.Replicas != is.Replicas {
		if _, err := bus.SetupStreams(ctx, c.bus, is.Events, is.Replicas, false); err != nil {
			return part.Change{}, err
		}
		change.Cancel = func() {
			if _, err := bus.SetupStreams(context.WithoutCancel(ctx), c.bus, was.Events, was.Replicas, false); err != nil {
				c.log.Warn("the log keeps the limits of a configuration that is not served", "error", err)
			}
		}
	}
	return change, nil
}

var _ store.Announcer = (*bus.Bus)(nil)
