package bus

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"belfry/pkg/errs"
	"belfry/pkg/event"
)

// The streams, and where the others get what they keep: dead.<listener> and
// retry.<listener>.
const (
	StreamEvents = "EVENTS"
	StreamDead   = "DEAD"
	StreamRetry  = "RETRY"
	DeadPrefix   = "dead."
	RetryPrefix  = "retry."
)

// Duplicates is for how long the bus knows the id of an event it has taken. It
// holds all of them in memory; what comes again later is handled again.
const Duplicates = 30 * time.Second

const (
	deadMaxAge    = 90 * 24 * time.Hour
	deadMaxBytes  = 1 << 30
	retryMaxBytes = 256 << 20

	lookTimeout   = 2 * time.Second // for one try: a server that has just started may pass over a request
	lookTries     = 5
	changeTimeout = 10 * time.Second
	setupRetryMin = 200 * time.Millisecond
	setupRetryMax = 10 * time.Second
)

// Setup makes the streams, or brings those that are there to what Options say.
// Open and every new connection do it by themselves. A guest only looks whether
// they are there.
func (b *Bus) Setup(ctx context.Context) error {
	var err error
	session := b.link.current()
	configs := Streams(b.opts.Events)
	if b.opts.Guest {
		configs = configs[:1] // what else there is, it may not be allowed to see
	}
	for _, config := range configs {
		if err = b.setupStream(ctx, config); err != nil {
			err = errs.Wrap(err, errs.Unavailable, "set up stream %s", config.Name)
			break
		}
	}
	if err == nil {
		b.batchesOff.Store(false)
	}
	b.streams.set(session, err)
	return err
}

// RunSetup is what helps a user who may not make or change what lacks.
const RunSetup = "run `belfry bus setup` with an admin's credentials"

// setupStream lives with differences that it can't change, so that a user who
// may only look gets by when someone else has made the streams.
func (b *Bus) setupStream(ctx context.Context, want jetstream.StreamConfig) error {
	if b.opts.Guest {
		_, err := look(ctx, b.js, want.Name)
		return err
	}
	found, err := setupStream(ctx, b, want, b.opts.Replicas, false)
	if err == nil || found.State != Differs || slices.Contains(found.Keys, "subjects") || !b.conn.IsConnected() {
		return err
	}
	b.log.Warn("a stream of the bus is not as configured", "stream", want.Name, "error", err)
	return nil
}

// Streams are what belfry keeps on the bus, the events first.
func Streams(events Limits) []jetstream.StreamConfig {
	return []jetstream.StreamConfig{eventsConfig(events), deadConfig(), retryConfig()}
}

// eventsConfig never binds the plain subjects: a request on one would get the
// stream's ack for an answer.
func eventsConfig(limits Limits) jetstream.StreamConfig {
	limits = limits.withDefaults()
	return jetstream.StreamConfig{
		Name:              StreamEvents,
		Description:       "durable events: events.<partition>.<Event>.<Store>.<uuid>",
		Subjects:          []string{event.LogPrefix + ">"},
		Storage:           jetstream.FileStorage,
		Retention:         jetstream.LimitsPolicy,
		Discard:           jetstream.DiscardOld,
		MaxAge:            limits.MaxAge,
		MaxBytes:          limits.MaxBytes,
		MaxMsgs:           limits.MaxMessages,
		Duplicates:        Duplicates,
		AllowBatchPublish: true,
		AllowDirect:       true,
	}
}

func deadConfig() jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name:        StreamDead,
		Description: "dead letters: dead.<listener>",
		Subjects:    []string{DeadPrefix + ">"},
		Storage:     jetstream.FileStorage,
		Retention:   jetstream.LimitsPolicy,
		Discard:     jetstream.DiscardOld,
		MaxAge:      deadMaxAge,
		MaxBytes:    deadMaxBytes,
		MaxMsgs:     -1,
		Duplicates:  Duplicates,
		AllowDirect: true,
	}
}

// retryConfig forgets nothing: what is here has left the dead letters. It goes
// once its listener has handled it, and when there is no room no more is taken.
func retryConfig() jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name:        StreamRetry,
		Description: "dead letters on their way back: retry.<listener>",
		Subjects:    []string{RetryPrefix + "*"},
		Storage:     jetstream.FileStorage,
		Retention:   jetstream.WorkQueuePolicy,
		Discard:     jetstream.DiscardNew,
		MaxBytes:    retryMaxBytes,
		MaxMsgs:     -1,
		Duplicates:  Duplicates,
		AllowDirect: true,
	}
}

func (l Limits) withDefaults() Limits {
	d := DefaultLimits()
	return Limits{
		MaxAge:      max(orDefault(l.MaxAge, d.MaxAge), 0), // the server's "no limit" is 0 here, -1 below
		MaxBytes:    max(orDefault(l.MaxBytes, d.MaxBytes), -1),
		MaxMessages: max(orDefault(l.MaxMessages, d.MaxMessages), -1),
	}
}

func orDefault[T comparable](v, fallback T) T {
	var zero T
	if v == zero {
		return fallback
	}
	return v
}

// keepStreams sees to it that the streams are there after each new connection
// and when a publish has found none.
func (b *Bus) keepStreams(ctx context.Context) {
	for wait := setupRetryMin; ; {
		changed := b.link.change()
		var again <-chan time.Time
		switch {
		case b.streams.err() == nil:
			wait = setupRetryMin
		case b.link.current().Err() == nil:
			if err := b.Setup(ctx); err != nil && ctx.Err() == nil {
				b.log.Warn("the bus's streams are not ready; trying again", "error", err, "in", wait)
				again = time.After(wait)
				wait = min(2*wait, setupRetryMax)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-again:
		case <-changed:
		case <-b.streams.missed:
		}
	}
}

// streamsState is whether the streams are known to be there.
type streamsState struct {
	missed chan struct{} // hears that a publish found no stream

	mu      sync.Mutex
	cause   error           // why they are not; nil when they are
	session context.Context // in which that was found: the next one may find otherwise
}

func newStreamsState() *streamsState {
	return &streamsState{
		missed: make(chan struct{}, 1),
		cause:  errs.New(errs.Unavailable, "they have not been set up yet"),
	}
}

func (s *streamsState) set(session context.Context, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cause, s.session = err, session
}

func (s *streamsState) err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cause == nil && s.session.Err() != nil {
		return errs.New(errs.Unavailable, "nobody has looked for them on this connection yet")
	}
	return s.cause
}

// miss notes that the streams are gone.
func (s *streamsState) miss() {
	s.mu.Lock()
	s.cause = errs.New(errs.Unavailable, "nobody answers on the events' subjects")
	s.mu.Unlock()
	select {
	case s.missed <- struct{}{}:
	default:
	}
}
