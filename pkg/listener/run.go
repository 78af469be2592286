package listener

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"belfry/pkg/bus"
	"belfry/pkg/errs"
	"belfry/pkg/event"
)

const stream = bus.StreamEvents

const (
	setupTimeout = 2 * time.Second // a bus that has just started may pass over a request
	againMin     = 100 * time.Millisecond
	againMax     = 5 * time.Second
	wellAfter    = 5 * time.Second // an outage that follows is another one

	// askAgain is how long a request for events lasts. A bus that comes back
	// has forgotten it: then this is the longest delay.
	askAgain = 2 * time.Second
	grace    = 100 * time.Millisecond // in which what the bus has sent arrives
)

// Run runs a listener until ctx ends, through whatever absences of the bus, and
// returns when what was in hand has been handled, or Spec.Drain has passed.
// It reports errs.Invalid for a spec that can't work.
func Run(ctx context.Context, b Bus, log *slog.Logger, spec Spec) error {
	if spec.Name == "" || spec.Handler == nil || len(spec.Filters) == 0 {
		return errs.New(errs.Invalid, "a listener needs a name, a filter and a handler")
	}
	r := &runner{spec: spec.withDefaults(), bus: b, log: log.With("listener", spec.Name), began: time.Now()}
	r.handle = r.spec.handler()
	r.slots = make(chan struct{}, r.spec.Concurrency)
	lastSaid := ""
	for wait := againMin; ctx.Err() == nil; wait = min(2*wait, againMax) {
		began := time.Now()
		err := r.listen(ctx)
		if ctx.Err() != nil {
			break
		}
		if errs.Is(err, errs.Invalid) {
			return err
		}
		if time.Since(began) > wellAfter {
			wait, lastSaid = againMin, ""
		}
		if said := err.Error(); said != lastSaid {
			lastSaid = said
			r.log.Warn("the listener can't listen; trying again", "error", err)
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
		}
	}
	return r.drain()
}

// runner is a listener at work.
type runner struct {
	spec   Spec
	handle Handler
	bus    Bus
	log    *slog.Logger

	slots    chan struct{} // one for each event in hand
	handling sync.WaitGroup

	began time.Time // when Run was called
	known bool      // the consumer has been there since
}

// listen takes events from the log until ctx ends or the bus refuses to hand
// them out. No event is asked for without a slot: what waited for one would be
// handed out again after AckWait.
func (r *runner) listen(ctx context.Context) error {
	setup, cancel := context.WithTimeout(ctx, setupTimeout)
	defer cancel()
	consumer, err := r.consumer(setup)
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
		r.handling.Go(func() {
			defer func() { <-r.slots }()
			r.attempt(context.WithoutCancel(ctx), m)
		})
	}
	return batch.Error()
}

// takeSlots waits for a slot, takes all that are free, and returns how many.
func (r *runner) takeSlots(ctx context.Context) int {
	select {
	case r.slots <- struct{}{}:
	case <-ctx.Done():
		return 0
	}
	for n := 1; ; n++ {
		select {
		case r.slots <- struct{}{}:
		default:
			return n
		}
	}
}

func (r *runner) attempt(ctx context.Context, m jetstream.Msg) {
	defer r.keepAlive(m)()
	e := &Event{Attempt: 1}
	var unreadable error
	e.Envelope, unreadable = event.Decode(m.Data())
	if meta, err := m.Metadata(); err == nil {
		e.Sequence, e.Attempt = meta.Sequence.Stream, int(meta.NumDelivered)
	}
	if unreadable != nil {
		r.bury(ctx, m, e, errs.Wrap(unreadable, errs.Invalid, "the event can't be read"))
		return
	}
	err := r.call(ctx, e)
	switch {
	case err == nil:
		// An acknowledgement that is lost brings the event again.
		_ = m.Ack()
	case IsPermanent(err), r.spec.MaxAttempts > 0 && e.Attempt >= r.spec.MaxAttempts:
		r.bury(ctx, m, e, err)
	default:
		delay := r.spec.Backoff(e.Attempt)
		r.log.Debug("an event is tried again", "event", e.ID, "attempt", e.Attempt, "in", delay, "error", err)
		_ = m.NakWithDelay(delay)
	}
}

func (r *runner) call(ctx context.Context, e *Event) error {
	if r.spec.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, r.spec.Timeout)
		defer cancel()
	}
	return recovered(r.handle)(ctx, e)
}

// keepAlive tells the bus from time to time that an event is in hand, until it
// is acknowledged or stop is called.
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

// drain waits for what is in hand.
func (r *runner) drain() error {
	done := make(chan struct{})
	go func() {
		r.handling.Wait()
		close(done)
	}()
	timer := time.NewTimer(r.spec.Drain)
	defer timer.Stop()
	select {
	case <-done:
		return nil
	case <-timer.C:
		return errs.New(errs.Canceled, "listener %s still handles events after %s; they come again", r.spec.Name, r.spec.Drain)
	}
}
