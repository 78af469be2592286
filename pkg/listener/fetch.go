package listener

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

const (
	// askAgain is how long a request for events lasts. A bus that comes back
	// has forgotten it: then this is the longest delay.
	askAgain = 2 * time.Second
	grace    = 100 * time.Millisecond // in which what the bus has sent arrives
)

// listen takes events from the log until ctx ends or the bus refuses to hand
// them out. No event is asked for without a slot: what waited for one would be
// handed out again after AckWait.
func (r *runner) listen(ctx context.Context) error {
	setup, cancel := context.WithTimeout(ctx, setupTimeout)
	defer cancel()
	consumer, err := r.setup(setup)
	if err != nil {
		return err
	}
	// What the bus has sent when the listener is asked to stop is still taken.
	asking, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(grace, cancel) })()
	for ctx.Err() == nil {
		err := r.fetch(ctx, asking, consumer)
		if errors.Is(err, context.DeadlineExceeded) && r.bus.JetStream().Conn().IsConnected() {
			continue // a bus that has just come back knows nothing of the request
		}
		if err != nil {
			return err
		}
	}
	return ctx.Err()
}

// fetch takes as many events as there are free slots, or what there is within
// a moment.
func (r *runner) fetch(ctx, asking context.Context, consumer jetstream.Consumer) error {
	free := r.takeSlots(ctx)
	defer func() {
		for range free {
			<-r.slots
		}
	}()
	if free == 0 {
		return nil
	}
	asking, cancel := context.WithTimeout(asking, askAgain)
	defer cancel()
	batch, err := consumer.Fetch(free, jetstream.FetchContext(asking))
	if err != nil {
		return err
	}
	for m := range batch.Messages() {
		free--
		r.queue <- r.receive(m) // has room for as many as there are slots
	}
	return batch.Error()
}

// takeSlots waits until enough slots are free for a request to be worth its
// while, takes all that are free, and returns how many.
func (r *runner) takeSlots(ctx context.Context) int {
	n := 0
	for n < max(1, r.spec.Prefetch/2) {
		select {
		case r.slots <- struct{}{}:
			n++
		case <-ctx.Done():
			return n
		}
	}
	for {
		select {
		case r.slots <- struct{}{}:
			n++
		default:
			return n
		}
	}
}
