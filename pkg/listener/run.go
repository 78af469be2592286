package listener

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"belfry/pkg/bus"
	"belfry/pkg/errs"
	"belfry/pkg/event"
)

const stream = bus.StreamEvents

const (
	setupTimeout = 5 * time.Second
	againMin     = 100 * time.Millisecond
	againMax     = 5 * time.Second
	heartbeat    = 5 * time.Second
)

// Run runs a listener until ctx ends, through whatever absences of the bus, and
// returns when what was in hand has been handled, or Spec.Drain has passed.
// It reports errs.Invalid for a spec that can't work.
func Run(ctx context.Context, b Bus, log *slog.Logger, spec Spec) error {
	if spec.Name == "" || spec.Handler == nil || len(spec.Filters) == 0 {
		return errs.New(errs.Invalid, "a listener needs a name, a filter and a handler")
	}
	r := &runner{spec: spec.withDefaults(), bus: b, log: log.With("listener", spec.Name)}
	r.handle = r.spec.handler()
	r.slots = make(chan struct{}, r.spec.Concurrency)
	for wait := againMin; ctx.Err() == nil; wait = min(2*wait, againMax) {
		began := time.Now()
		err := r.listen(ctx)
		if ctx.Err() != nil {
			break
		}
		if errs.Is(err, errs.Invalid) {
			return err
		}
		if time.Since(began) > heartbeat {
			wait = againMin
		}
		r.log.Debug("the listener listens again", "after", err, "in", wait)
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
}

// listen takes events from the log until ctx ends or the consumer is lost.
func (r *runner) listen(ctx context.Context) error {
	setup, cancel := context.WithTimeout(ctx, setupTimeout)
	defer cancel()
	consumer, err := r.consumer(setup)
	if err != nil {
		return err
	}
	doubts := make(chan error, 1)
	// What is fetched ahead counts against AckWait while it waits for a slot,
	// so no more is fetched than there are slots.
	consuming, err := consumer.Consume(func(m jetstream.Msg) { r.take(ctx, m) },
		jetstream.PullMaxMessages(max(r.spec.Concurrency, 2)),
		jetstream.PullHeartbeat(heartbeat),
		jetstream.ConsumeErrHandler(func(_ jetstream.ConsumeContext, err error) {
			select {
			case doubts <- err:
			default:
			}
		}))
	if err != nil {
		return err
	}
	defer func() {
		// What was fetched and has no slot goes back at once.
		consuming.Drain()
		<-consuming.Closed()
	}()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-consuming.Closed():
			return errs.New(errs.Unavailable, "the consumer has ended")
		case err := <-doubts:
			if r.lost(ctx, err) {
				return err
			}
		}
	}
}

// lost reports whether an error of consuming means that the consumer has to be
// made again. The client gets over everything else by itself.
func (r *runner) lost(ctx context.Context, err error) bool {
	if errors.Is(err, jetstream.ErrConsumerDeleted) {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, setupTimeout)
	defer cancel()
	_, err = r.bus.JetStream().Consumer(ctx, stream, r.spec.Name)
	return errors.Is(err, jetstream.ErrConsumerNotFound) || errors.Is(err, jetstream.ErrStreamNotFound)
}

// consumer makes the durable consumer, or brings the one that is there to what
// the spec says. Where a listener started stays as it was.
func (r *runner) consumer(ctx context.Context) (jetstream.Consumer, error) {
	want := jetstream.ConsumerConfig{
		Durable:        r.spec.Name,
		FilterSubjects: r.spec.Filters,
		AckPolicy:      jetstream.AckExplicitPolicy,
		AckWait:        r.spec.AckWait,
		MaxDeliver:     -1, // attempts are counted here, where the reason is known
		// Some room beyond what is in hand, for events that wait out a delay.
		MaxAckPending: r.spec.Concurrency + 1000,
		DeliverPolicy: jetstream.DeliverAllPolicy,
	}
	if r.spec.Start == New {
		want.DeliverPolicy = jetstream.DeliverNewPolicy
	}
	js := r.bus.JetStream()
	there, err := js.Consumer(ctx, stream, r.spec.Name)
	switch {
	case err == nil:
		have := there.CachedInfo().Config
		want.DeliverPolicy, want.OptStartSeq, want.OptStartTime = have.DeliverPolicy, have.OptStartSeq, have.OptStartTime
	case !errors.Is(err, jetstream.ErrConsumerNotFound):
		return nil, err
	}
	consumer, err := js.CreateOrUpdateConsumer(ctx, stream, want)
	var api *jetstream.APIError
	if errors.As(err, &api) && api.Code == 400 {
		return nil, errs.Wrap(err, errs.Invalid, "the bus does not take listener %s: %s", r.spec.Name, api.Description)
	}
	return consumer, err
}

// take hands an event to a goroutine of its own once there is a slot.
func (r *runner) take(ctx context.Context, m jetstream.Msg) {
	select {
	case r.slots <- struct{}{}:
	case <-ctx.Done():
		_ = m.Nak() // for whoever listens now
		return
	}
	r.handling.Go(func() {
		defer func() { <-r.slots }()
		r.attempt(context.WithoutCancel(ctx), m)
	})
}

func (r *runner) attempt(ctx context.Context, m jetstream.Msg) {
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
	err := r.call(ctx, m, e)
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

// call calls the handler, and tells the bus meanwhile that it is alive.
func (r *runner) call(ctx context.Context, m jetstream.Msg, e *Event) error {
	if r.spec.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, r.spec.Timeout)
		defer cancel()
	}
	stop := r.keepAlive(m)
	defer stop()
	return recovered(r.handle)(ctx, e)
}

// keepAlive tells the bus from time to time that an event is in hand.
func (r *runner) keepAlive(m jetstream.Msg) (stop func() bool) {
	var timer atomic.Pointer[time.Timer]
	t := time.AfterFunc(r.spec.AckWait/2, func() {
		if m.InProgress() == nil {
			timer.Load().Reset(r.spec.AckWait / 2)
		}
	})
	timer.Store(t)
	return t.Stop
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
