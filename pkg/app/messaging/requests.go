package messaging

import (
	"context"
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	"belfry/internal/prom"
	"belfry/pkg/bus"
	"belfry/pkg/errs"
	"belfry/pkg/listener/replay"
)

// Subjects of requests to the bus, some of which its user may lack: nats.conf gives a front few permissions.
const (
	ConsumerList = "$JS.API.CONSUMER.LIST"
	DeadInfo     = "$JS.API.STREAM.INFO." + bus.StreamDead
	DeadPages    = "$JS.API.CONSUMER.CREATE." + bus.StreamDead
	DeadGet      = "$JS.API.STREAM.MSG.GET." + bus.StreamDead
	DeadDirect   = "$JS.API.DIRECT.GET." + bus.StreamDead
	DeadDelete   = "$JS.API.STREAM.MSG.DELETE." + bus.StreamDead
	Retries      = "retry" // and below
)

// Permitted runs a function that needs permissions on the bus. It returns Denied as soon as the bus denies a request on
// one of the subjects, since the bus does not reply to those. The error names the command that an admin of the bus can
// use instead.
func Permitted(ctx context.Context, b *bus.Bus, what, command string, subjects []string,
	do func(ctx context.Context) error) error {
	ctx, stop := b.UntilDenied(ctx, subjects...)
	defer stop()
	err := Do(ctx, b, do)
	if err != nil && errors.Is(context.Cause(ctx), bus.ErrPermissionDenied) {
		return errs.Wrap(err,
			errs.Denied, "the bus's user of this process may not %s: use `%s` as the admin of the bus, or grant the "+
				"user the permissions that docs/reference/bus.md lists for the console", what, command)
	}
	return err
}

// Do sends requests to the bus. It returns errs.Unavailable at once if there is no connection, and when it is lost: the
// requests would wait for their timeouts.
func Do(ctx context.Context, b *bus.Bus, do func(ctx context.Context) error) error {
	if err := b.Connected(); err != nil {
		return err
	}
	connected, stop := b.WhileConnected(ctx)
	defer stop()
	err := do(connected)
	if err != nil && connected.Err() != nil && ctx.Err() == nil {
		return errs.Wrap(err, errs.Unavailable, "the bus is unavailable: the connection was lost meanwhile")
	}
	return err
}

// Listeners returns the state of all listeners.
func Listeners(ctx context.Context, b *bus.Bus) (all []*replay.Listener, err error) {
	err = Permitted(ctx, b, "list the listeners", "belfry listener list", []string{ConsumerList, "$JS.API.STREAM.INFO"},
		func(ctx context.Context) error {
			all, err = replay.List(ctx, b.JetStream())
			return err
		})
	return all, err
}

var lettersDesc = prometheus.NewDesc("belfry_dead_letters",
	"Events that a listener could not handle, and that nobody has dealt with yet.", []string{"listener"}, nil)

// letters are the numbers of dead letters. A listener without dead letters has no number. No listener has one if the
// permissions on the bus do not allow the request.
func letters(b *bus.Bus) prometheus.Collector {
	return prom.Computed(func(ctx context.Context, values prom.Values) {
		_ = Permitted(ctx, b, "count dead letters", "belfry dlq list", []string{DeadInfo},
			func(ctx context.Context) error {
				letters, err := replay.Letters(ctx, b.JetStream())
				for listener, n := range letters {
					values.Gauge(lettersDesc, float64(n), listener)
				}
				return err
			})
	}, lettersDesc)
}
