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

// waiting is how many events may wait out a delay, beyond those in hand. When
// more fail, no further ones are handed out: it is probably not the events
// that are at fault, and the server keeps a note of each.
const waiting = 20_000

// clockDoubt is by how much the server's clock may be behind ours.
const clockDoubt = time.Minute

// crowd is what the room for events in hand is rounded up to, so that listeners
// with other numbers of hands can have the same consumer.
const crowd = 10_000

// jsAPI begins the subjects of requests to JetStream, apiConsumer those about
// consumers.
const (
	jsAPI       = jetstream.DefaultAPIPrefix
	apiConsumer = jsAPI + "CONSUMER."
)

// setup makes the durable consumer, or brings the one that is there to what
// the spec says; it touches nothing that is as it should be, so that a user
// who may not make consumers can use one. Where a listener started stays as it
// was.
func (r *runner) setup(ctx context.Context) error {
	_, err := r.ensure(ctx, false)
	if r.spec.Lacks != nil && r.stopping.Err() == nil && (err == nil || r.bus.JetStream().Conn().IsConnected()) {
		r.spec.Lacks(r.stream+"."+r.consumer, err)
	}
	return err
}

// ensure is setup, or, with check, only looks.
func (r *runner) ensure(ctx context.Context, check bool) (bus.Diff, error) {
	js, want := r.bus.JetStream(), r.wanted()
	f := bus.Diff{What: "consumer " + r.consumer + " of stream " + r.stream, State: bus.InSync}
	at := r.stream + "." + r.consumer
	ctx, done := r.bus.UntilDenied(ctx, apiConsumer+"INFO."+at, apiConsumer+"CREATE."+at)
	defer done()
	there, err := js.Consumer(ctx, r.stream, r.consumer)
	switch {
	case err == nil:
		r.known = true
		have := there.CachedInfo().Config
		if compare(&f, have, want); len(f.Keys) == 0 {
			return f, nil
		}
		f.State = bus.Drifted
		want.DeliverPolicy, want.OptStartSeq, want.OptStartTime = have.DeliverPolicy, have.OptStartSeq, have.OptStartTime
		want.PauseUntil = have.PauseUntil
	case errors.Is(err, jetstream.ErrConsumerNotFound), check && errors.Is(err, jetstream.ErrStreamNotFound):
		f.State = bus.Missing
	default:
		return f, bus.Explain(ctx, err, f.What+" can't be read", "")
	}
	if check {
		return f, nil
	}
	return r.put(ctx, f, want)
}

// put makes or changes the consumer.
func (r *runner) put(ctx context.Context, f bus.Diff, want jetstream.ConsumerConfig) (bus.Diff, error) {
	_, err := r.bus.JetStream().CreateOrUpdateConsumer(ctx, r.stream, want)
	var api *jetstream.APIError
	if errors.As(err, &api) && api.Code == 400 {
		return f, errs.Wrap(err, errs.Invalid, "the bus does not take listener %s: %s", r.consumer, api.Description)
	}
	if !errors.Is(context.Cause(ctx), bus.ErrPermissionDenied) {
		// A fault on the way doesn't say that it was not made.
		r.known = r.known || api == nil || api.Code >= 500
	}
	why := f.What + " is missing and can't be created"
	done := bus.Created
	if f.State == bus.Drifted {
		why, done = f.What+" differs ("+f.Detail+") and can't be updated", bus.Updated
	}
	if err == nil {
		f.State = done
	}
	return f, bus.Explain(ctx, err, why, bus.SetupHint+" (with --listener "+r.spec.Name+" if it is none of belfry's)")
}

// wanted is the consumer as the spec has it.
func (r *runner) wanted() jetstream.ConsumerConfig {
	want := jetstream.ConsumerConfig{
		Durable:        r.consumer,
		FilterSubjects: r.filters,
		AckPolicy:      jetstream.AckExplicitPolicy,
		AckWait:        r.spec.AckWait,
		MaxDeliver:     -1, // attempts are counted here, where the reason is known
		MaxAckPending:  (r.inHand()+r.spec.Prefetch+crowd-1)/crowd*crowd + waiting,
	}
	if r.spec.Ordered {
		want.MaxAckPending = 1
	}
	if r.stream == bus.StreamRetry {
		// In this way the request's subject says it, so that permissions can tell.
		want.FilterSubject, want.FilterSubjects = r.filters[0], nil
	}
	r.start(&want)
	return want
}

// start says where a consumer begins that is not there. One that has been
// there and was deleted may not skip what came meanwhile.
func (r *runner) start(c *jetstream.ConsumerConfig) {
	if r.known && r.spec.Start == New {
		FromTime(r.began.Add(-clockDoubt)).deliver(c)
		return
	}
	r.spec.Start.deliver(c)
}

// compare notes what keeps a consumer from doing what is wanted of it.
func compare(f *bus.Diff, have, want jetstream.ConsumerConfig) {
	f.Compare("filter", strings.Join(subjects(have), " "), strings.Join(subjects(want), " "))
	f.Compare("ack_policy", have.AckPolicy, want.AckPolicy)
	f.Compare("ack_wait", have.AckWait, want.AckWait)
	f.Compare("max_deliver", have.MaxDeliver, want.MaxDeliver)
	f.Compare("max_ack_pending", have.MaxAckPending, want.MaxAckPending)
	f.Compare("backoff", len(have.BackOff), 0)
	f.Compare("max_batch", have.MaxRequestBatch, 0)
	f.Compare("max_expires", have.MaxRequestExpires, time.Duration(0))
	f.Compare("max_bytes", have.MaxRequestMaxBytes, 0)
}

// subjects are what a consumer selects, in whichever of two ways it says so.
func subjects(c jetstream.ConsumerConfig) []string {
	if c.FilterSubject != "" {
		return []string{c.FilterSubject}
	}
	return c.FilterSubjects
}
