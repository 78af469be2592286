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

// CheckSetup reports errs.Invalid for a spec that Setup refuses. The spec needs no handler.
func CheckSetup(spec Spec) error {
	spec.Handler, spec.Batch = nothing, nil
	return spec.validate()
}

// Setup creates the durable consumers of a listener, or updates them to its spec,
// as Run does, and resumes those that somebody has paused; with check it only compares. The
// position of an existing consumer does not change. The spec needs no handler.
func Setup(ctx context.Context, b Bus, spec Spec, check bool) ([]bus.Diff, error) {
	if check {
		return setUp(ctx, b, spec, comparing)
	}
	return setUp(ctx, b, spec, settingUp)
}

// Update is Setup for a process that needs the events of a spec. Consumers that somebody has paused stay paused.
func Update(ctx context.Context, b Bus, spec Spec) error {
	_, err := setUp(ctx, b, spec, updating)
	return err
}

func setUp(ctx context.Context, b Bus, spec Spec, why purpose) ([]bus.Diff, error) {
	if err := CheckSetup(spec); err != nil {
		return nil, err
	}
	spec.Handler, spec.Batch = nothing, nil
	var all []bus.Diff
	runners := newRunners(b, slog.New(slog.DiscardHandler), spec.withDefaults())
	for _, r := range runners {
		one, cancel := context.WithTimeout(ctx, commandTimeout)
		diff, err := r.ensure(one, why)
		cancel()
		if err != nil {
			return all, errs.Wrap(err, errs.Unavailable, "listener %s can't be set up", spec.Name)
		}
		all = append(all, diff)
	}
	// A reset moves all partitions of an ordered listener, to the position of the one that is behind the others.
	next := ^uint64(0)
	for _, r := range runners {
		if r.stream == stream {
			next = min(next, r.floor+1)
		}
	}
	for i, r := range runners {
		if all[i].State == bus.Recreate {
			all[i].Commands = r.recreate(next)
		}
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
