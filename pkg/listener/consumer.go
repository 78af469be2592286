package listener

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"belfry/pkg/bus"
	"belfry/pkg/errs"
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
	_, err := r.ensure(ctx, false)
	if r.spec.OnSetupError != nil && r.stopping.Err() == nil && (err == nil || r.bus.JetStream().Conn().IsConnected()) {
		r.spec.OnSetupError(r.stream+"."+r.consumer, err)
	}
	return err
}

// ensure is setup, or, with check, only compares.
func (r *runner) ensure(ctx context.Context, check bool) (bus.Diff, error) {
	js, want := r.bus.JetStream(), r.wanted()
	d := bus.Diff{What: "consumer " + r.consumer + " of stream " + r.stream, State: bus.InSync}
	at := r.stream + "." + r.consumer
	ctx, stop := r.bus.UntilDenied(ctx, apiConsumer+"INFO."+at, apiConsumer+"CREATE."+at)
	defer stop()
	found, err := js.Consumer(ctx, r.stream, r.consumer)
	var have jetstream.ConsumerConfig
	switch {
	case err == nil:
		r.existed = true
		have = found.CachedInfo().Config
		if compare(&d, have, want); len(d.Keys) == 0 {
			return d, nil
		}
		d.State = bus.Drifted
		want.DeliverPolicy, want.OptStartSeq, want.OptStartTime = have.DeliverPolicy, have.OptStartSeq, have.OptStartTime
		want.PauseUntil = have.PauseUntil
	case errors.Is(err, jetstream.ErrConsumerNotFound), check && errors.Is(err, jetstream.ErrStreamNotFound):
		d.State = bus.Missing
	default:
		return d, bus.Explain(ctx, err, d.What+" can't be read", "")
	}
	if check {
		return d, nil
	}
	d, err = r.put(ctx, d, want)
	if toleratesFilter(err, d, have, want) {
		r.log.Warn("the consumer also selects events about the security of accounts, which are left out; "+bus.SetupHint, "filter", strings.Join(subjects(have), " "))
		err = nil
	}
	return d, err
}

// put creates or updates the consumer. One that is deleted while the server updates it is put again later: a reset deletes
// consumers.
func (r *runner) put(ctx context.Context, d bus.Diff, want jetstream.ConsumerConfig) (bus.Diff, error) {
	_, err := r.bus.JetStream().CreateOrUpdateConsumer(ctx, r.stream, want)
	var api *jetstream.APIError
	gone := errors.As(err, &api) && api.ErrorCode == jetstream.JSErrCodeConsumerDoesNotExist
	if api != nil && api.Code == 400 && !gone {
		return d, errs.Wrap(err, errs.Invalid, "the bus rejects listener %s: %s", r.consumer, api.Description)
	}
	if !errors.Is(context.Cause(ctx), bus.ErrPermissionDenied) {
		// Without a reply it may have been created.
		r.existed = r.existed || gone || api == nil || api.Code >= 500
	}
	why := d.What + " is missing and can't be created"
	state := bus.Created
	if d.State == bus.Drifted {
		why, state = d.What+" differs ("+d.Detail+") and can't be updated", bus.Updated
	}
	if err == nil {
		d.State = state
	}
	return d, bus.Explain(ctx, err, why, bus.SetupHint+" (with --listener "+r.spec.Name+" if it is none of belfry's)")
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

// compare adds the settings with which a consumer would not work as wanted.
func compare(d *bus.Diff, have, want jetstream.ConsumerConfig) {
	d.Compare("filter", strings.Join(subjects(have), " "), strings.Join(subjects(want), " "))
	d.Compare("ack_policy", have.AckPolicy, want.AckPolicy)
	d.Compare("ack_wait", have.AckWait, want.AckWait)
	d.Compare("max_deliver", have.MaxDeliver, want.MaxDeliver)
	d.Compare("max_ack_pending", have.MaxAckPending, want.MaxAckPending)
	d.Compare("backoff", len(have.BackOff), 0)
	d.Compare("max_batch", have.MaxRequestBatch, 0)
	d.Compare("max_expires", have.MaxRequestExpires, time.Duration(0))
	d.Compare("max_bytes", have.MaxRequestMaxBytes, 0)
}

// subjects are the filter subjects of a consumer, which it has in either of two fields.
func subjects(c jetstream.ConsumerConfig) []string {
	if c.FilterSubject != "" {
		return []string{c.FilterSubject}
	}
	return c.FilterSubjects
}
