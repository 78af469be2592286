package listener

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"belfry/pkg/bus"
	"belfry/pkg/errs"
	"belfry/pkg/event"
)

// delayed is how many events may wait for a retry, beyond those being handled.
// When more fail, the bus delivers no further ones: the cause is probably not the
// events, and the server keeps state for each.
const delayed = 20_000

// clockSkew is how far the server's clock may lag ours.
const clockSkew = time.Minute

// ackPendingStep is the step that MaxAckPending is rounded up to, so that
// processes of a listener with different concurrency want the same consumer.
const ackPendingStep = 10_000

// jsAPI is the prefix of the subjects of requests to JetStream, apiConsumer of
// those about consumers.
const (
	jsAPI       = jetstream.DefaultAPIPrefix
	apiConsumer = jsAPI + "CONSUMER."
)

// setup creates the durable consumer, or updates it to the spec. It changes
// nothing when nothing differs, so that a user without the permission to create
// consumers can use an existing one, and never moves a consumer's position.
func (r *runner) setup(ctx context.Context) error {
	d, err := r.ensure(ctx, running)
	if err == nil && d.Unusable() {
		err = errs.New(errs.Unavailable, "%s differs (%s) and must be recreated: `belfry bus setup --check "+
			"--listener %s` says how, without --listener if it is one of belfry's", d.What, d.Detail, r.spec.Name)
	}
	if r.spec.OnSetupError != nil && r.stopping.Err() == nil && (err == nil || r.bus.JetStream().Conn().IsConnected()) {
		r.spec.OnSetupError(r.stream+"."+r.consumer, err)
	}
	return err
}

// purpose is the reason of a comparison.
type purpose int

const (
	comparing purpose = iota // only the comparison
	updating                 // for a process that needs its events
	settingUp                // for an administrator: all settings as configured, and not paused
	running                  // for a listener that is about to use it
)

// ensure compares the consumer with the spec, and creates or updates it unless it is only comparing. While a listener
// is running, a difference that does not prevent its use is not an error.
func (r *runner) ensure(ctx context.Context, why purpose) (bus.Diff, error) {
	want := r.wanted()
	d := bus.Diff{What: "consumer " + r.consumer + " of stream " + r.stream, State: bus.InSync}
	at := r.stream + "." + r.consumer
	ctx, stop := r.bus.UntilDenied(ctx, apiConsumer+"INFO."+at, apiConsumer+"CREATE."+at, apiConsumer+"PAUSE."+at)
	defer stop()
	info, err := r.info(ctx)
	switch {
	case err == nil:
		r.existed, r.floor = true, info.AckFloor.Stream
	case errors.Is(err, jetstream.ErrConsumerNotFound), why == comparing && errors.Is(err, jetstream.ErrStreamNotFound):
		d.State = bus.Missing
		if why == comparing {
			return d, nil
		}
		if d, _, err = r.put(ctx, d, want); errors.Is(err, jetstream.ErrConsumerExists) {
			return r.ensure(ctx, why) // another process has created it, and somebody may have paused it since
		}
		return d, err
	default:
		return d, bus.Explain(ctx, err, d.What+" can't be read", "")
	}
	merged := settle(&d, info.Config, want)
	update := len(d.Keys) > len(d.Fixed) && info.Config.DeliverSubject == ""
	paused := bus.Paused(info, r.spec.Ordered && r.stream == stream)
	if paused {
		d.Differ(pauseSetting, time.Now().Add(info.PauseRemaining).UTC().Format(time.RFC3339), "none")
	}
	if len(d.Keys) == 0 {
		return d, nil
	}
	if d = d.Differs(r.recreate(r.floor + 1)); why == comparing {
		return d, nil
	}
	if update {
		before := d
		if d, err = r.update(ctx, d, merged, want); err != nil && why == running &&
			tolerates(err, before, info.Config, want) {
			r.differs.Do(func() {
				r.log.Warn("the consumer is not as configured; "+bus.SetupHint, "differs", before.Detail)
			})
			return d, nil
		}
	}
	if err == nil && paused && why == settingUp {
		d, err = r.unpause(ctx, d)
	}
	return d, err
}

// info reads the consumer, also one that is useless here.
func (r *runner) info(ctx context.Context) (*jetstream.ConsumerInfo, error) {
	found, err := r.bus.JetStream().Consumer(ctx, r.stream, r.consumer)
	if err == nil {
		return found.CachedInfo(), nil
	}
	if !errors.Is(err, jetstream.ErrNotPullConsumer) {
		return nil, err
	}
	push, err := r.bus.JetStream().PushConsumer(ctx, r.stream, r.consumer)
	if err != nil {
		return nil, err
	}
	return push.CachedInfo(), nil
}

// update lets the server change the settings that it can. The server may ignore some silently.
func (r *runner) update(ctx context.Context, d bus.Diff, merged, want jetstream.ConsumerConfig) (bus.Diff, error) {
	before := d
	d, after, err := r.put(ctx, d, merged)
	if before.State == bus.Recreate && errors.Is(err, errs.Invalid) {
		return before, nil // the server refuses further settings with this one
	}
	if err != nil {
		return d, err
	}
	left := bus.Diff{What: d.What}
	if settle(&left, after.CachedInfo().Config, want); len(left.Keys) == 0 {
		return d, nil
	}
	// A server that has restarted replies to the first update of a consumer with the settings from before the update.
	now, err := r.info(ctx)
	if err != nil {
		return d, bus.Explain(ctx, err, d.What+" can't be read after its update", "")
	}
	left = bus.Diff{What: d.What}
	if settle(&left, now.Config, want); len(left.Keys) == 0 {
		return d, nil
	}
	if left = left.Differs(r.recreate(r.floor + 1)); left.State == bus.Recreate {
		return left, nil
	}
	return left, errs.New(errs.Unavailable,
		"%s differs (%s) and the server has not changed that although it replied that it did", d.What, left.Detail)
}

// unpause resumes a consumer.
func (r *runner) unpause(ctx context.Context, d bus.Diff) (bus.Diff, error) {
	err := bus.Resume(ctx, r.bus.JetStream(), r.stream, r.consumer)
	if err == nil && d.State == bus.Drifted {
		d.State = bus.Updated
	}
	return d, bus.Explain(ctx, err, d.What+" is paused and can't be resumed", bus.SetupHint)
}

// put creates or updates the consumer. One that is deleted while the server updates it is put again later: a reset
// deletes consumers. A missing one is only created. An update would resume one that was created and paused meanwhile.
func (r *runner) put(ctx context.Context, d bus.Diff,
	want jetstream.ConsumerConfig) (bus.Diff, jetstream.Consumer, error) {
	put := r.bus.JetStream().CreateOrUpdateConsumer
	if d.State == bus.Missing {
		put = r.bus.JetStream().CreateConsumer
	}
	after, err := put(ctx, r.stream, want)
	if errors.Is(err, jetstream.ErrConsumerExists) {
		return d, nil, err
	}
	var api *jetstream.APIError
	gone := errors.As(err, &api) && api.ErrorCode == jetstream.JSErrCodeConsumerDoesNotExist
	if api != nil && api.Code == 400 && !gone {
		return d, nil, errs.Wrap(err, errs.Invalid, "the bus rejects listener %s: %s", r.consumer, api.Description)
	}
	if !errors.Is(context.Cause(ctx), bus.ErrPermissionDenied) {
		// Without a reply it may have been created.
		r.existed = r.existed || gone || api == nil || api.Code >= 500
	}
	why := d.What + " is missing and can't be created"
	state := bus.Created
	if d.State != bus.Missing {
		why, state = d.What+" differs ("+d.Detail+") and can't be updated", bus.Updated
	}
	if err == nil {
		d.State = state
	}
	return d, after, bus.Explain(ctx, err, why,
		bus.SetupHint+" (with --listener "+r.spec.Name+" if it is not one of belfry's)")
}

// wanted is the consumer's configuration by the spec.
func (r *runner) wanted() jetstream.ConsumerConfig {
	want := jetstream.ConsumerConfig{
		Durable:        r.consumer,
		FilterSubjects: r.filters,
		AckPolicy:      jetstream.AckExplicitPolicy,
		AckWait:        r.spec.AckWait,
		MaxDeliver:     -1, // attempts are limited here, where the error is known
		MaxAckPending:  (r.handledAtOnce()+r.spec.Prefetch+ackPendingStep-1)/ackPendingStep*ackPendingStep + delayed,
	}
	if r.spec.Ordered {
		want.MaxAckPending = 1
	}
	if r.stream == bus.StreamRetry {
		// The request's subject then ends with the filter, for permissions.
		want.FilterSubject, want.FilterSubjects = r.filters[0], nil
	}
	r.start(&want)
	return want
}

// start sets the position of a consumer that is created. One that existed and was
// deleted must not skip the events since then.
func (r *runner) start(c *jetstream.ConsumerConfig) {
	if r.existed && r.spec.Start == StartNew() {
		StartAtTime(r.began.Add(-clockSkew)).deliverPolicy(c)
		return
	}
	r.spec.Start.deliverPolicy(c)
}

// subjects are the filter subjects of a consumer, which it has in either of two fields.
func subjects(c jetstream.ConsumerConfig) []string {
	if c.FilterSubject != "" {
		return []string{c.FilterSubject}
	}
	return c.FilterSubjects
}

// Lag reports how many events are not delivered to a listener yet, and how many are
// delivered and not acknowledged.
func Lag(ctx context.Context, b Bus, name string) (pending, unacked uint64, err error) {
	consumers := []string{name}
	// A user may have the permission for only one consumer.
	if _, err := b.JetStream().Consumer(ctx, stream, name); errors.Is(err, jetstream.ErrConsumerNotFound) {
		consumers = nil
		for p := range event.Partitions {
			consumers = append(consumers, partitionConsumer(name, p))
		}
	} else if err != nil {
		return 0, 0, err
	}
	for _, c := range consumers {
		consumer, err := b.JetStream().Consumer(ctx, stream, c)
		if err != nil {
			return 0, 0, err
		}
		info := consumer.CachedInfo()
		pending, unacked = pending+info.NumPending, unacked+uint64(info.NumAckPending)
	}
	return pending, unacked, nil
}
