// Package messaging has the parts of a process that use the bus: the connection, the relay of events, the narrowing of
// consumers, and the check of settings. Its requests to the bus end at once without a connection or a permission.
package messaging

import (
	"context"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"

	"belfry/pkg/app/part"
	"belfry/pkg/app/plan"
	"belfry/pkg/app/serving"
	"belfry/pkg/bus"
	"belfry/pkg/bus/embedded"
	"belfry/pkg/store"
)

// Connection connects to the bus, or runs the embedded one.
type Connection struct {
	Log     *slog.Logger
	Metrics prometheus.Registerer

	bus *bus.Bus // nil until it is open
}

// Part returns the functions that start, reload and stop it.
func (c *Connection) Part() serving.Part {
	return serving.Part{Name: "the bus", Beside: true, Start: c.start, Reload: c.reload,
		Stop: func(ctx context.Context) error {
			if c.bus == nil {
				return nil
			}
			return c.bus.Close(ctx)
		}}
}

func (c *Connection) start(ctx context.Context, first *serving.Generation) error {
	o, err := first.Plan.BusOptions()
	if err != nil {
		return err
	}
	o.Logger = c.Log
	if o.URL == "" {
		server := plan.EmbeddedBus(first.Config)
		server.Logger = c.Log
		o.Server = embedded.New(server)
	}
	if c.bus, err = bus.Open(ctx, o); err != nil {
		return err
	}
	first.Bus = c.bus
	c.Metrics.MustRegister(letters(c.bus))
	return nil
}

// reload applies another configuration to the bus: the limits of the log, and the credentials of the next connection.
func (c *Connection) reload(ctx context.Context, before, next *serving.Generation) (part.Change, error) {
	was, err := before.Plan.BusOptions()
	if err != nil {
		return part.Change{}, err
	}
	is, err := next.Plan.BusOptions()
	if err != nil {
		return part.Change{}, err
	}
	change := part.Change{Apply: func() { c.bus.SetAuth(is.Auth) }}
	if was.Events != is.Events || was.Replicas != is.Replicas {
		if _, err := bus.SetupStreams(ctx, c.bus, is.Events, is.Replicas, false); err != nil {
			return part.Change{}, err
		}
		change.Cancel = func() {
			if _, err := bus.SetupStreams(context.WithoutCancel(ctx), c.bus, was.Events, was.Replicas,
				false); err != nil {
				c.Log.Warn("the log still has the limits of the refused configuration", "error", err)
			}
		}
	}
	return change, nil
}

var _ store.Announcer = (*bus.Bus)(nil)
