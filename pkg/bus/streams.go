package bus

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"belfry/internal/backoff"
	"belfry/pkg/errs"
	"belfry/pkg/event"
)

// The streams, and the subject prefixes of DEAD and RETRY: dead.<listener> and
// retry.<listener>.
const (
	StreamEvents = "EVENTS"
	StreamDead   = "DEAD"
	StreamRetry  = "RETRY"
	DeadPrefix   = "dead."
	RetryPrefix  = "retry."
)

// DuplicateWindow is for how long the bus deduplicates by event id. The server
// keeps all ids of that time in memory; a later duplicate is stored and handled
// again.
const DuplicateWindow = 30 * time.Second

const (
	deadMaxAge    = 90 * 24 * time.Hour
	deadMaxBytes  = 1 << 30
	retryMaxBytes = 256 << 20

	getTimeout    = 2 * time.Second // of one try
	getTries      = 5
	changeTimeout = 10 * time.Second
	setupRetryMin = 200 * time.Millisecond
	setupRetryMax = 10 * time.Second
)

// Setup creates the streams, or updates them to match Options. Open and every reconnect
// call it. On an Unmanaged bus it does nothing: reading the state of a stream requires
// permission to read all its subjects, which a listener's user lacks. A missing stream
// shows when one of its consumers is used.
func (b *Bus) Setup(ctx context.Context) error {
	var err error
	replicated := false
	session := b.state.current()
	configs := StreamConfigs(b.opts.Events)
	if b.opts.Unmanaged {
		configs = nil
	}
	for _, config := range configs {
		var found Diff
		if found, err = b.setupStream(ctx, config); err != nil {
			err = errs.Wrap(err, errs.Unavailable, "set up stream %s", config.Name)
			break
		}
		replicated = replicated || found.replicas > 1
	}
	if err == nil {
		b.batchesOff.Store(replicated)
	}
	b.streams.set(session, err)
	return err
}

// SetupHint is the remedy without the permission to create or update streams and
// consumers.
const SetupHint = "run `belfry bus setup` with an admin's credentials"

// setupStream tolerates differences that it can't change, so that a user who may
// only read streams can use those that someone else has created.
func (b *Bus) setupStream(ctx context.Context, want jetstream.StreamConfig) (Diff, error) {
	found, err := setupStream(ctx, b, want, b.opts.Replicas, false)
	differs := found.State == Drifted || found.State == Recreate
	if found.State == Recreate && err == nil {
		b.log.Warn("a stream of the bus must be recreated: `belfry bus setup --check` says how", "stream", want.Name,
			"differs", found.Detail)
	}
	if err == nil || !differs || slices.Contains(found.Keys, "subjects") || !b.conn.IsConnected() {
		return found, err
	}
	b.log.Warn("a stream of the bus is not as configured", "stream", want.Name, "error", err)
	return found, nil
}

// StreamConfigs are the configurations of belfry's streams, EVENTS first.
func StreamConfigs(events Limits) []jetstream.StreamConfig {
	return []jetstream.StreamConfig{eventsConfig(events), deadConfig(), retryConfig()}
}

// eventsConfig never binds the plain subjects: a request on one would get the
// stream's acknowledgment as its reply.
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
		Duplicates:        DuplicateWindow,
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
		Duplicates:  DuplicateWindow,
		AllowDirect: true,
	}
}

// retryConfig discards nothing: its messages have left the dead letters. A message
// is removed once its listener has handled it; a full stream rejects new ones.
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
		Duplicates:  DuplicateWindow,
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

// keepStreams runs Setup after each new connection and when a publish has found no
// stream, and retries it. It logs a reason once until the streams are ready.
func (b *Bus) keepStreams(ctx context.Context) {
	logged := ""
	for delays := backoff.New(setupRetryMin, setupRetryMax); ; {
		changed := b.state.change()
		var retry <-chan time.Time
		switch {
		case b.streams.err() == nil:
			delays.Reset()
			logged = ""
		case b.state.current().Err() == nil:
			if err := b.Setup(ctx); err != nil && ctx.Err() == nil {
				retry = time.After(delays.Next())
				if text := err.Error(); text != logged {
					logged = text
					b.log.Warn("the bus's streams are not ready; retrying until they are", "error", err)
				}
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-retry:
		case <-changed:
		case <-b.streams.missing:
		}
	}
}

// streamsState is whether the streams are known to exist.
type streamsState struct {
	missing chan struct{} // signals that a publish found no stream

	mu      sync.Mutex
	cause   error           // why they are not ready; nil when they are
	session context.Context // in which cause was found
}

func newStreamsState() *streamsState {
	return &streamsState{
		missing: make(chan struct{}, 1),
		cause:   errs.New(errs.Unavailable, "they have not been set up yet"),
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
		return errs.New(errs.Unavailable, "they have not been checked on this connection yet")
	}
	return s.cause
}

// setMissing records that the streams do not exist, and wakes keepStreams.
func (s *streamsState) setMissing() {
	s.mu.Lock()
	s.cause = errs.New(errs.Unavailable, "no stream has the events' subjects")
	s.mu.Unlock()
	select {
	case s.missing <- struct{}{}:
	default:
	}
}
