package listener

import (
	"context"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go"

	"belfry/internal/backoff"
	"belfry/pkg/errs"
	"belfry/pkg/event"
)

// delivery is a delivered event that is not acknowledged yet.
type delivery struct {
	Event
	links
	deliveries int       // the bus's delivery count
	logged     time.Time // when the event reached the log
	msg        *nats.Msg
	subject    string // of the event in the log
	decodeErr  error
}

// receive takes over a message; from now on heartbeats are sent for it.
func (r *runner) receive(m *nats.Msg) *delivery {
	d := &delivery{msg: m, deliveries: 1}
	r.inFlight.add(d)
	d.Envelope, d.decodeErr = event.Decode(m.Data)
	if meta, err := m.Metadata(); err == nil {
		d.Sequence, d.deliveries, d.logged = meta.Sequence.Stream, int(meta.NumDelivered), meta.Timestamp //nolint:gosec // a count
		r.clock.saw(meta.Timestamp, time.Now())
	}
	d.Attempt = d.deliveries
	r.locate(d)
	return d
}

// ack, nak and term end a delivery. When the reply to the bus is lost, the event
// is redelivered.

func (r *runner) ack(d *delivery) {
	r.inFlight.remove(d)
	_ = d.msg.Ack()
}

func (r *runner) nak(d *delivery, delay time.Duration) {
	r.inFlight.remove(d)
	_ = d.msg.NakWithDelay(delay)
}

func (r *runner) term(d *delivery) {
	r.inFlight.remove(d)
	_ = d.msg.Term()
}

// hand gives an event to a worker. They start with the events: hundreds of idle
// goroutines would cost time at each start, and memory. Only one subscription at a time calls it.
func (r *runner) hand(d *delivery) {
	if r.held.Add(1) > int64(r.workers) && r.workers < r.spec.Concurrency {
		r.workers++
		r.handling.Go(func() { r.work(context.WithoutCancel(r.stopping)) })
	}
	r.queue <- d // does not block: the queue is as long as the window
}

// work handles events from the queue until it is closed. After a stop those that
// have not been started are returned to the bus.
func (r *runner) work(ctx context.Context) {
	for d := range r.queue {
		switch {
		case r.stopping.Err() != nil:
			r.nak(d, 0)
			r.window.release(1)
		case r.suspected(d):
			r.handling.Go(func() {
				r.isolate(ctx, d)
				r.window.release(1)
			})
		case r.spec.Batch != nil:
			r.window.release(r.workBatch(ctx, d))
		default:
			r.attempt(ctx, d)
			r.window.release(1)
		}
		r.held.Add(-1)
	}
}

// attempt handles one event; an ordered listener retries it here.
func (r *runner) attempt(ctx context.Context, d *delivery) {
	if !r.handleable(ctx, d) {
		return
	}
	resume, ok := r.pausePartition(d)
	if !ok {
		r.nak(d, 0)
		return
	}
	defer resume()
	for {
		err := r.call(ctx, d)
		if !r.spec.Ordered || !r.retriable(err, d) {
			r.finish(ctx, d, err)
			return
		}
		// No later event of the partition may be handled before it.
		delay := r.spec.Backoff(d.Attempt)
		r.logRetry(ctx, d, delay, err)
		if backoff.Sleep(r.stopping, delay) != nil {
			r.nak(d, 0)
			return
		}
		d.Attempt++
	}
}

// call calls the handler with one event.
func (r *runner) call(ctx context.Context, d *delivery) error {
	r.lock(d)
	defer r.unlock(d)
	began := r.window.startCall()
	if r.spec.Batch == nil {
		err := r.handle(ctx, &d.Event)
		r.window.endCall(began, 1)
		return err
	}
	all, err := r.callBatch(ctx, []*delivery{d})
	r.window.endCall(began, 1)
	if err != nil {
		return err
	}
	return all[0]
}

// handleable reports whether the handler is called with an event. One that can't be decoded and one that crashes the
// process become dead letters; one that the listener must not receive is acknowledged.
func (r *runner) handleable(ctx context.Context, d *delivery) bool {
	switch {
	case d.decodeErr == nil && r.excluded(d):
		r.ack(d)
		return false
	case d.decodeErr != nil:
		r.deadLetter(ctx, d, errs.Wrap(d.decodeErr, errs.Invalid, "the event can't be decoded"))
		return false
	case r.poison(d):
		r.deadLetter(ctx, d,
			errs.New(errs.Internal, "the listener's process crashed repeatedly while it handled the event"))
		return false
	}
	return true
}

// retriable reports whether another attempt may succeed.
func (r *runner) retriable(err error, d *delivery) bool {
	return err != nil && !IsPermanent(err) && (r.spec.MaxAttempts <= 0 || d.Attempt < r.spec.MaxAttempts)
}

// finish acknowledges the event, schedules a retry, or makes it a dead letter.
func (r *runner) finish(ctx context.Context, d *delivery, err error) {
	switch {
	case err == nil:
		r.ack(d)
	case r.retriable(err, d):
		delay := r.spec.Backoff(d.Attempt)
		r.logRetry(ctx, d, delay, err)
		r.nak(d, delay)
	default:
		r.deadLetter(ctx, d, err)
	}
}

// logRetry logs a failed attempt. One that fails now and then is not news. One that keeps failing is, but when a
// store is unavailable thousands do.
func (r *runner) logRetry(ctx context.Context, d *delivery, delay time.Duration, err error) {
	level := slog.LevelDebug
	if d.Attempt >= severalAttempts {
		r.warnings.Do(func() { level = slog.LevelWarn })
	}
	r.log.Log(ctx, level, "an event is retried", "event", d.ID, "attempt", d.Attempt, "in", delay, "error", err)
}
