package listener

import (
	"context"
	"log/slog"
	"time"

	"belfry/pkg/bus"
	"belfry/pkg/errs"
	"belfry/pkg/event"
)

// commandTimeout is for one consumer: unlike a listener, a command does not try
// again.
const commandTimeout = 10 * time.Second

// Setup makes the durable consumers of a listener, or brings them to what its
// spec says, as Run does; with check it only looks. Where a consumer that is
// there stands is not touched. The spec needs no handler.
func Setup(ctx context.Context, b Bus, spec Spec, check bool) ([]bus.Diff, error) {
	spec.Handler, spec.Batch = nothing, nil
	if err := spec.check(); err != nil {
		return nil, err
	}
	var all []bus.Diff
	for _, r := range newRunners(b, slog.New(slog.DiscardHandler), spec.withDefaults()) {
		asking, cancel := context.WithTimeout(ctx, commandTimeout)
		found, err := r.ensure(asking, check)
		cancel()
		if err != nil {
			return all, errs.Wrap(err, errs.Unavailable, "listener %s can't be set up", spec.Name)
		}
		all = append(all, found)
	}
	return all, nil
}

func nothing(context.Context, *Event) error { return nil }

// Rights are the subjects that a listener's user needs once its consumers are
// set up, that of an interceptor of the name among them.
func Rights(name string, ordered bool) (publish, subscribe []string, err error) {
	if err := (Spec{Name: name, Handler: nothing}).check(); err != nil {
		return nil, nil, err
	}
	publish = []string{bus.DeadPrefix + name, jsAPI + "STREAM.INFO." + stream}
	use := func(stream, consumer string) {
		publish = append(publish, apiConsumer+"INFO."+stream+"."+consumer, apiConsumer+"MSG.NEXT."+stream+"."+consumer,
			"$JS.ACK."+stream+"."+consumer+".>")
	}
	use(bus.StreamRetry, name)
	if ordered {
		for p := range event.Partitions {
			use(stream, partitioned(name, p))
			publish = append(publish, apiConsumer+"PAUSE."+stream+"."+partitioned(name, p))
		}
	} else {
		use(stream, name)
	}
	return publish, []string{"_INBOX_" + name + ".>", "intercept.*.*." + name}, nil
}
