package listener

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"belfry/pkg/errs"
	"belfry/pkg/event"
)

// delivery is an event that the bus has handed out and that is not
// acknowledged yet.
type delivery struct {
	Event
	msg        jetstream.Msg
	unreadable error
	stop       func() // the signs of life
}

// receive takes an event over: from now on it is kept alive.
func (r *runner) receive(m jetstream.Msg) *delivery {
	d := &delivery{msg: m, stop: r.keepAlive(m)}
	d.Attempt = 1
	d.Envelope, d.unreadable = event.Decode(m.Data())
	if meta, err := m.Metadata(); err == nil {
		d.Sequence, d.Attempt = meta.Sequence.Stream, int(meta.NumDelivered) //nolint:gosec // a count
	}
	return d
}

// release ends what receive began.
func (r *runner) release(d *delivery) {
	d.stop()
	<-r.slots
}

// crashes is how many deliveries beyond twice MaxAttempts there may be before
// an event counts as one that ends the process which handles it. Events that
// are given back unhandled at a stop are delivered again as well.
const crashes = 10

// work handles events from the queue until it is closed. At a stop those that
// nobody has begun are given back.
func (r *runner) work(ctx context.Context) {
	for d := range r.queue {
		if r.stopping.Err() != nil {
			_ = d.msg.Nak()
			r.release(d)
			continue
		}
		if r.spec.Batch != nil {
			r.workBatch(ctx, d)
			continue
		}
		r.attempt(ctx, d)
		r.release(d)
	}
}

func (r *runner) attempt(ctx context.Context, d *delivery) {
	if !r.fit(ctx, d) {
		return
	}
	for {
		err := r.handle(ctx, &d.Event)
		if !r.spec.Ordered || !r.passes(err, d) {
			r.settle(ctx, d, err)
			return
		}
		// In order, nothing behind it may go first.
		delay := r.spec.Backoff(d.Attempt)
		r.log.Debug("an event is tried again", "event", d.ID, "attempt", d.Attempt, "in", delay, "error", err)
		if !pause(r.stopping, delay) {
			_ = d.msg.Nak()
			return
		}
		d.Attempt++
	}
}

// fit reports whether an event is to be handled at all. One that can't be read,
// and one that ends whoever handles it, go to the dead letters.
func (r *runner) fit(ctx context.Context, d *delivery) bool {
	most := r.spec.MaxAttempts
	switch {
	case d.unreadable != nil:
		r.bury(ctx, d, errs.Wrap(d.unreadable, errs.Invalid, "the event can't be read"))
		return false
	case most > 0 && d.Attempt > 2*most+crashes:
		r.bury(ctx, d, errs.New(errs.Internal, "the listener ended again and again while it handled the event"))
		return false
	}
	return true
}

// passes reports whether an attempt failed with a fault that a further one may
// mend.
func (r *runner) passes(err error, d *delivery) bool {
	return err != nil && !IsPermanent(err) && (r.spec.MaxAttempts <= 0 || d.Attempt < r.spec.MaxAttempts)
}

// settle tells the bus what became of an attempt.
func (r *runner) settle(ctx context.Context, d *delivery, err error) {
	switch {
	case err == nil:
		// An acknowledgement that is lost brings the event again.
		_ = d.msg.Ack()
	case r.passes(err, d):
		delay := r.spec.Backoff(d.Attempt)
		r.log.Debug("an event is tried again", "event", d.ID, "attempt", d.Attempt, "in", delay, "error", err)
		_ = d.msg.NakWithDelay(delay)
	default:
		r.bury(ctx, d, err)
	}
}

// workBatch handles an event together with those that wait behind it.
func (r *runner) workBatch(ctx context.Context, first *delivery) {
	batch := []*delivery{first}
	for more := true; more && len(batch) < r.spec.BatchSize; {
		select {
		case d, open := <-r.queue:
			if more = open; open {
				batch = append(batch, d)
			}
		default:
			more = false
		}
	}
	var events []*Event
	var fit []*delivery
	for _, d := range batch {
		if r.fit(ctx, d) {
			events, fit = append(events, &d.Event), append(fit, d)
		}
	}
	if len(fit) > 0 {
		failed, err := r.callBatch(ctx, events)
		for i, d := range fit {
			each := err
			if each == nil && i < len(failed) {
				each = failed[i]
			}
			r.settle(ctx, d, each)
		}
	}
	for _, d := range batch {
		r.release(d)
	}
}

// callBatch calls the handler; a panic is an error of all events.
func (r *runner) callBatch(ctx context.Context, events []*Event) (failed []error, err error) {
	defer recovered(&err)
	if r.spec.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, r.spec.Timeout)
		defer cancel()
	}
	return r.spec.Batch(ctx, events), nil
}

// keepAlive tells the bus from time to time that an event is here, until it is
// acknowledged or stop is called.
func (r *runner) keepAlive(m jetstream.Msg) (stop func()) {
	var mu sync.Mutex
	var timer *time.Timer
	stopped := false
	mu.Lock()
	defer mu.Unlock()
	timer = time.AfterFunc(r.spec.AckWait/2, func() {
		mu.Lock()
		defer mu.Unlock()
		// Another error is the connection's, which comes back.
		if !stopped && !errors.Is(m.InProgress(), jetstream.ErrMsgAlreadyAckd) {
			timer.Reset(r.spec.AckWait / 2)
		}
	})
	return func() {
		mu.Lock()
		defer mu.Unlock()
		stopped = true
		timer.Stop()
	}
}
