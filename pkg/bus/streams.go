package bus

import (
	"context"
	"errors"
	"reflect"
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

	setupTimeout  = 2 * time.Second // for one try: a server that has just started may pass over a request
	setupTries    = 5
	setupRetryMin = 200 * time.Millisecond
	setupRetryMax = 10 * time.Second
)

// Setup makes the streams, or brings those that are there to what Options say.
// Open and every new connection do it by themselves; it is for who prepares a
// cluster whose other users may not. A guest only looks whether they are there.
func (b *Bus) Setup(ctx context.Context) error {
	var err error
	configs := []jetstream.StreamConfig{b.eventsConfig(), b.deadConfig(), b.retryConfig()}
	if b.opts.Guest {
		configs = configs[:1] // what else there is, it may not be allowed to see
	}
	for _, config := range configs {
		for range setupTries {
			err = b.setupStream(ctx, config)
			if !errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil || !b.conn.IsConnected() {
				break
			}
		}
		if err != nil {
			err = errs.Wrap(err, errs.Unavailable, "set up stream %s", config.Name)
			break
		}
	}
	if err == nil {
		b.batchesOff.Store(false)
	}
	b.streams.set(err)
	return err
}

// eventsConfig never binds the plain subjects: a request on one would get the
// stream's ack for an answer.
func (b *Bus) eventsConfig() jetstream.StreamConfig {
	limits := b.opts.Events.withDefaults()
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

func (b *Bus) deadConfig() jetstream.StreamConfig {
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
func (b *Bus) retryConfig() jetstream.StreamConfig {
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

// setupStream changes nothing when nothing differs, and lives with differences
// that it can't change, so that a user who may only look gets by when someone
// else has made the streams.
func (b *Bus) setupStream(ctx context.Context, want jetstream.StreamConfig) error {
	asking, cancel := context.WithTimeout(ctx, setupTimeout)
	defer cancel()
	stream, err := b.js.Stream(asking, want.Name)
	if b.opts.Guest {
		return err
	}
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return b.createStream(asking, want)
	}
	if err != nil {
		return err
	}
	have := stream.CachedInfo().Config
	merged := mergeStream(have, want)
	if b.opts.Replicas > 0 {
		merged.Replicas = b.opts.Replicas
	}
	if reflect.DeepEqual(have, merged) {
		return nil
	}
	changing, cancel := context.WithTimeout(ctx, setupTimeout)
	defer cancel()
	if _, err = b.js.UpdateStream(changing, merged); err == nil {
		return nil
	}
	if !slices.Equal(have.Subjects, want.Subjects) || !b.conn.IsConnected() {
		return err
	}
	b.log.Warn("a stream of the bus is not as configured, and can't be changed", "stream", want.Name, "error", err)
	return nil
}

// codeUnknownField is what a strict server answers to a setting that it is too
// old to know.
const codeUnknownField jetstream.ErrorCode = 10025

func (b *Bus) createStream(ctx context.Context, want jetstream.StreamConfig) error {
	want.Replicas = max(b.opts.Replicas, 1)
	_, err := b.js.CreateStream(ctx, want)
	var api *jetstream.APIError
	if want.AllowBatchPublish && errors.As(err, &api) && api.ErrorCode == codeUnknownField {
		want.AllowBatchPublish = false
		_, err = b.js.CreateStream(ctx, want)
	}
	return err
}

// mergeStream sets what belfry decides and leaves what an administrator may
// have chosen otherwise (placement, compression, ...).
func mergeStream(have, want jetstream.StreamConfig) jetstream.StreamConfig {
	have.Description = want.Description
	have.Subjects = want.Subjects
	have.Discard = want.Discard
	have.MaxAge = want.MaxAge
	have.MaxBytes = want.MaxBytes
	have.MaxMsgs = want.MaxMsgs
	have.Duplicates = want.Duplicates
	have.AllowBatchPublish = want.AllowBatchPublish
	have.AllowDirect = want.AllowDirect
	return have
}

// keepStreams sees to it that the streams are there after each new connection
// and when a publish has found none.
func (b *Bus) keepStreams(ctx context.Context) {
	for wait := setupRetryMin; ; {
		changed := b.link.change()
		var again <-chan time.Time
		switch {
		case !b.conn.IsConnected():
			b.streams.set(errs.New(errs.Unavailable, "the connection is away"))
		case b.streams.err() == nil:
			wait = setupRetryMin
		default:
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

	mu    sync.Mutex
	cause error // why they are not; nil when they are
}

func newStreamsState() *streamsState {
	return &streamsState{
		missed: make(chan struct{}, 1),
		cause:  errs.New(errs.Unavailable, "they have not been set up yet"),
	}
}

func (s *streamsState) set(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cause = err
}

func (s *streamsState) err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cause
}

// miss notes that the streams are gone.
func (s *streamsState) miss() {
	s.set(errs.New(errs.Unavailable, "nobody answers on the events' subjects"))
	select {
	case s.missed <- struct{}{}:
	default:
	}
}
