package listener

import (
	"context"
	"errors"
	"slices"
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

// setup makes the durable consumer, or brings the one that is there to what
// the spec says; it touches nothing that is as it should be, so that a user
// who may not make consumers can use one. Where a listener started stays as it
// was.
func (r *runner) setup(ctx context.Context) error {
	want := jetstream.ConsumerConfig{
		Durable:        r.consumer,
		FilterSubjects: r.filters,
		AckPolicy:      jetstream.AckExplicitPolicy,
		AckWait:        r.spec.AckWait,
		MaxDeliver:     -1, // attempts are counted here, where the reason is known
		MaxAckPending:  r.inHand() + r.spec.Prefetch + waiting,
	}
	if r.spec.Ordered {
		want.MaxAckPending = 1
	}
	if r.stream == bus.StreamRetry {
		// In this way the request's subject says it, so that permissions can tell.
		want.FilterSubject, want.FilterSubjects = r.filters[0], nil
	}
	r.start(&want)
	js := r.bus.JetStream()
	there, err := js.Consumer(ctx, r.stream, r.consumer)
	switch {
	case err == nil:
		r.known = true
		have := there.CachedInfo().Config
		if same(have, want) {
			return nil
		}
		want.DeliverPolicy, want.OptStartSeq, want.OptStartTime = have.DeliverPolicy, have.OptStartSeq, have.OptStartTime
		want.PauseUntil = have.PauseUntil
	case !errors.Is(err, jetstream.ErrConsumerNotFound):
		return err
	}
	_, err = js.CreateOrUpdateConsumer(ctx, r.stream, want)
	var api *jetstream.APIError
	if errors.As(err, &api) && api.Code == 400 {
		return errs.Wrap(err, errs.Invalid, "the bus does not take listener %s: %s", r.consumer, api.Description)
	}
	// A fault on the way doesn't say that it was not made.
	r.known = r.known || api == nil || api.Code >= 500
	return err
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

// same reports whether a consumer does what is wanted of it.
func same(have, want jetstream.ConsumerConfig) bool {
	return slices.Equal(subjects(have), subjects(want)) && have.AckPolicy == want.AckPolicy &&
		have.AckWait == want.AckWait && have.MaxDeliver == want.MaxDeliver &&
		have.MaxAckPending == want.MaxAckPending && len(have.BackOff) == 0 &&
		have.MaxRequestBatch == 0 && have.MaxRequestExpires == 0 && have.MaxRequestMaxBytes == 0
}

// subjects are what a consumer selects, in whichever of two ways it says so.
func subjects(c jetstream.ConsumerConfig) []string {
	if c.FilterSubject != "" {
		return []string{c.FilterSubject}
	}
	return c.FilterSubjects
}
