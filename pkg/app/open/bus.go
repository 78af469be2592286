package open

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"belfry/config"
	"belfry/internal/backoff"
	"belfry/pkg/app/plan"
	storage "belfry/pkg/binary/driver"
	"belfry/pkg/bus"
	"belfry/pkg/bus/embedded"
	"belfry/pkg/errs"
)

// UnavailableStopTimeout limits how long a stop tries to publish while a backend or the bus is unavailable.
const UnavailableStopTimeout = 2 * time.Second

// BusAlone opens the bus for a command. An embedded one serves only this process.
func BusAlone(ctx context.Context, p *plan.Plan) (*bus.Bus, error) {
	o, err := p.BusOptions()
	if err != nil {
		return nil, err
	}
	o.Logger = slog.New(slog.DiscardHandler)
	if o.URL == "" {
		server := plan.EmbeddedBus(p.Config)
		server.Listen, server.Logger = "", o.Logger
		o.Server = embedded.New(server)
	}
	b, err := bus.Open(ctx, o)
	if err != nil {
		return nil, err
	}
	if err := AwaitBus(ctx, b); err != nil {
		return nil, errors.Join(err, CloseBus(ctx, b))
	}
	return b, nil
}

// busPatience is how long a backup or a restore waits for the bus, which connects in the background.
const busPatience = 10 * time.Second

// AwaitBus waits until the bus has its streams.
func AwaitBus(ctx context.Context, b *bus.Bus) error {
	began := time.Now()
	for delays := backoff.New(10*time.Millisecond, time.Second); ; {
		err := b.Ready(ctx)
		if err == nil || time.Since(began) > busPatience || delays.Wait(ctx) != nil {
			return err
		}
	}
}

// CloseBus closes a connection to the bus, also if it is unavailable.
func CloseBus(ctx context.Context, b *bus.Bus) error {
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), UnavailableStopTimeout)
	defer cancel()
	return b.Close(closing)
}

// WithRest opens the data that a backup needs besides the stores.
func WithRest(ctx context.Context, p *plan.Plan, do func(*bus.Bus, map[string]storage.Storage) error) error {
	b, err := BusAlone(ctx, p)
	if err != nil {
		return err
	}
	storages, err := Storages(ctx, p)
	if err == nil {
		err = errors.Join(do(b, storages), CloseStorages(storages))
	}
	return errors.Join(err, CloseBus(ctx, b))
}

// BusClient returns the options with which a command connects to the bus of a configuration: the external
// one, or the port of the embedded one in the process that serves.
func BusClient(c *config.Config) (bus.Options, error) {
	o, err := (&plan.Plan{Config: c}).BusOptions()
	if err != nil || o.URL != "" {
		return o, err
	}
	e := plan.EmbeddedBus(c)
	o.URL, err = e.Address()
	switch {
	case err != nil:
		return o, errs.New(errs.Invalid, "%v; or pass the address that `belfry serve` prints with --url", err)
	case o.URL == "":
		return o, errs.New(errs.Invalid, "the bus is inside the process that serves and has no port (bus.listen is "+
			"empty): set bus.listen, to 127.0.0.1:4222 for instance, and restart belfry")
	}
	o.Syncer, err = embedded.OpenFiles(e)
	return o, err
}
