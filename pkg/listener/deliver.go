package listener

import (
	"context"
	"time"

	"github.com/nats-io/nats.go"

	"belfry/pkg/backoff"
	"belfry/pkg/errs"
	"belfry/pkg/event"
)

// delivery is an event that the bus has handed out and that is not
// acknowledged yet.
type delivery struct {
	Event
	links
	deliveries int       // how often the bus has handed it out
	logged     time.Time // when the log took it
	msg        *nats.Msg
	subject    string // where the log holds it
	unreadable error
}

// receive takes an event over: from now on it is kept alive.
func (r *runner) receive(m *nats.Msg) *delivery {
	d := &delivery{msg: m, deliveries: 1}
	r.held.add(d)
	d.Envelope, d.unreadable = event.Decode(m.Data)
	if meta, err := m.Metadata(); err == nil {
		d.Sequence, d.deliveries, d.logged = meta.Sequence.Stream, int(meta.NumDelivered), meta.Timestamp //nolint:gosec // a count
	}
	d.Attempt = d.deliveries
	r.locate(d)
	return d
}

// The ways to let go of an event. What of it is lost on the way brings the event
// again.

func (r *runner) ack(d *delivery) {
	r.held.remove(d)
	_ = d.msg.Ack()
}

func (r *runner) giveBack(d *delivery, delay time.Duration) {
	r.held.remove(d)
	_ = d.msg.NakWithDelay(delay)
}

func (r *runner) end(d *delivery) {
	r.held.remove(d)
	_ = d.msg.Term()
}

// work handles events from the queue until it is closed. At a stop those that
// nobody has begun are given back.
func (r *runner) work(ctx context.Context) {
	for d := range r.queue {
		switch {
		case r.stopping.Err() != nil:
			r.giveBack(d, 0)
			r.slots.give(1)
		case r.suspect(d):
			r.handling.Go(func() {
				r.isolate(ctx, d)
				r.slots.give(1)
			})
		case r.spec.Batch != nil:
			r.slots.give(r.workBatch(ctx, d))
		default:
			r.attempt(ctx, d)
			r.slots.give(1)
		}
	}
}

// attempt handles one event, in order as often as it takes.
func (r *runner) attempt(ctx context.Context, d *delivery) {
	if !r.fit(ctx, d) {
		return
	}
	goOn, halted := r.haltOthers(d)
	if !halted {
		r.giveBack(d, 0)
		return
	}
	defer goOn()
	for {
		err := r.call(ctx, d)
		if !r.spec.Ordered || !r.passes(err, d) {
			r.settle(ctx, d, err)
			return
		}
		// In order, nothing behind it may go first.
		delay := r.spec.Backoff(d.Attempt)
		r.log.Debug("an event is tried again", "event", d.ID, "attempt", d.Attempt, "in", delay, "error", err)
		if backoff.Sleep(r.stopping, delay) != nil {
			r.giveBack(d, 0)
			return
		}
		d.Attempt++
	}
}

// call calls the handler with one event.
func (r *runner) call(ctx context.Context, d *delivery) error {
	r.enter(d)
	defer r.leave(d)
	began := r.slots.clock()
	if r.spec.Batch == nil {
		err := r.handle(ctx, &d.Event)
		r.slots.took(began, 1)
		return err
	}
	all, err := r.callBatch(ctx, []*delivery{d})
	r.slots.took(began, 1)
	if err != nil {
		return err
	}
	return all[0]
}

// fit reports whether an event is to be handled at all. One that can't be read,
// and one that ends whoever handles it, go to the dead letters.
func (r *runner) fit(ctx context.Context, d *delivery) bool {
	switch {
	case d.unreadable != nil:
		r.bury(ctx, d, errs.Wrap(d.unreadable, errs.Invalid, "the event can't be read"))
		return false
	case r.guilty(d):
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
		r.ack(d)
	case r.passes(err, d):
		delay := r.spec.Backoff(d.Attempt)
		r.log.Debug("an event is tried again", "event", d.ID, "attempt", d.Attempt, "in", delay, "error", err)
		r.giveBack(d, delay)
	default:
		r.bury(ctx, d, err)
	}
}
