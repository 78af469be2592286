package listener

import (
	"context"
	"log/slog"
	"time"

	"belfry/pkg/bus"
	"belfry/pkg/errs"
	"belfry/pkg/event"
)

// commandTimeout is for one consumer: unlike a listener, a command does not retry.
const commandTimeout = 10 * time.Second

// Setup creates the durable consumers of a listener, or updates them to its spec,
// as Run does; with check it only compares. The position of an existing consumer
// does not change. The spec needs no handler.
func Setup(ctx context.Context, b Bus, spec Spec, check bool) ([]bus.Diff, error) {
	spec.Handler, spec.Batch = nothing, nil
	if err := spec.validate(); err != nil {
		return nil, err
	}
	var all []bus.Diff
	for _, r := range newRunners(b, slog.New(slog.DiscardHandler), spec.withDefaults()) {
		one, cancel := context.WithTimeout(ctx, commandTimeout)
		diff, err := r.ensure(one, check)
		cancel()
		if err != nil {
			return all, errs.Wrap(err, errs.Unavailable, "listener %s can't be set up", spec.Name)
		}
		all = append(all, diff)
	}
	return all, nil
}

func nothing(context.Context, *Event) error { return nil }

// Permissions are the subjects that a listener's user must be allowed to publish
// and subscribe to once its consumers are set up, including those of an
// interceptor of the same name.
func Permissions(name string, ordered bool) (publish, subscribe []string, err error) {
	if err := (Spec{Name: name, Handler: nothing}).validate(); err != nil {
		return nil, nil, err
	}
	publish = []string{bus.DeadPrefix + name}
	use := func(stream, consumer string) {
		publish = append(publish, apiConsumer+"INFO."+stream+"."+consumer, apiConsumer+"MSG.NEXT."+stream+"."+consumer,
			"$JS.ACK."+stream+"."+consumer+".>")
	}
	use(bus.StreamRetry, name)
	if ordered {
		for p := range event.Partitions {
			use(stream, partitionConsumer(name, p))
			publish = append(publish, apiConsumer+"PAUSE."+stream+"."+partitionConsumer(name, p))
		}
	} else {
		use(stream, name)
	}
	return publish, []string{"_INBOX_" + name + ".>", "intercept.*.*." + name}, nil
}
