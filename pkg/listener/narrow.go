package listener

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"belfry/pkg/bus"
	"belfry/pkg/event"
)

// A consumer of an earlier release, or of a program in another language, can have a filter such as events.>, which
// would select the events of event.Auth. A listener with the permission to change the consumer narrows the filter; one
// without it skips those events itself.

// NarrowConsumers narrows all durable consumers of the log that select events of event.Auth only by a wildcard, so that
// they no longer receive them. With check it only compares. Positions do not change. It returns the consumers that it
// found. If one can't be narrowed it continues with the others; the error is that of the first. It only compares the
// consumers in except, named as in Diff.What.
func NarrowConsumers(ctx context.Context, b bus.Requester, check bool, except ...string) ([]bus.Diff, error) {
	list := apiConsumer + "LIST." + stream
	ctx, stop := b.UntilDenied(ctx, jsAPI+"STREAM.INFO."+stream, list)
	defer stop()
	events, err := b.JetStream().Stream(ctx, stream)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, bus.Explain(ctx, err, "the consumers of the log can't be read", "")
	}
	var wide []jetstream.ConsumerConfig
	infos := events.ListConsumers(ctx)
	for info := range infos.Info() {
		have := selected(info.Config)
		if info.Config.Durable != "" && !slices.Equal(have, withoutAuth(have)) {
			wide = append(wide, info.Config)
		}
	}
	if err := infos.Err(); err != nil {
		return nil, bus.Explain(ctx, err, "the consumers of the log can't be listed", "")
	}
	var all []bus.Diff
	var failed error
	for _, config := range wide {
		d, err := narrow(ctx, b, config, check, except)
		if errors.Is(err, jetstream.ErrConsumerNotFound) || errors.Is(err, jetstream.ErrConsumerDoesNotExist) {
			continue // it was deleted meanwhile, and must not be created again
		}
		all = append(all, d)
		if failed == nil {
			failed = err
		}
		if ctx.Err() != nil {
			break
		}
	}
	return all, failed
}

// selected are the filters of a consumer; one without any receives everything.
func selected(c jetstream.ConsumerConfig) []string {
	if all := subjects(c); len(all) > 0 {
		return all
	}
	return []string{event.LogPrefix + ">"}
}

// narrow narrows one consumer.
func narrow(ctx context.Context, b bus.Requester, config jetstream.ConsumerConfig, check bool,
	except []string) (bus.Diff, error) {
	d := bus.Diff{What: "consumer " + config.Durable + " of stream " + stream, State: bus.Drifted}
	have := selected(config)
	want := withoutAuth(have)
	d.Compare("filter", strings.Join(have, " "), strings.Join(want, " "))
	if check || slices.Contains(except, d.What) {
		return d, nil
	}
	ctx, stop := b.UntilDenied(ctx, apiConsumer+"CREATE."+stream+"."+config.Durable)
	defer stop()
	config.FilterSubject, config.FilterSubjects = "", want
	var err error
	if config.DeliverSubject != "" {
		_, err = b.JetStream().UpdatePushConsumer(ctx, stream, config)
	} else {
		_, err = b.JetStream().UpdateConsumer(ctx, stream, config)
	}
	if err == nil {
		d.State = bus.Updated
	}
	return d, bus.Explain(ctx, err,
		d.What+" would receive events about the security of accounts ("+d.Detail+") and can't be updated",
		bus.SetupHint)
}

// excluded reports whether an event is one that the listener would have to name and has not: its consumer has a wider
// filter.
func (r *runner) excluded(d *delivery) bool {
	return d.Envelope.Event.OnlyByName() &&
		!slices.ContainsFunc(r.spec.Filters, func(filter string) bool { return matches(filter, d.subject) })
}

// matches reports whether a filter selects a subject.
func matches(filter, subject string) bool {
	tokens := strings.Split(subject, ".")
	for i, want := range strings.Split(filter, ".") {
		switch {
		case want == ">":
			return len(tokens) > i
		case i >= len(tokens) || want != "*" && want != tokens[i]:
			return false
		}
	}
	return len(tokens) == len(strings.Split(filter, "."))
}
