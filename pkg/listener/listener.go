// Package listener runs functions on events: what belfry's own workers and
// everyone else's listeners are made of.
//
// A listener is a durable consumer of the log. An event is acknowledged after
// its handler returned nil, and handed out again, with growing delay, after a
// passing fault. A lasting fault, and the last of a limited number of attempts,
// put the event with the dead letters together with the reason. A handler may
// see an event more than once, and must make that harmless.
package listener

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"belfry/pkg/event"
)

// Event is a durable event as a handler gets it.
type Event struct {
	event.Envelope

	Sequence uint64 // in the log
	Attempt  int    // 1 for the first
}

// Handler handles one event. It is called by as many goroutines at once as
// Spec.Concurrency says. Its context ends when Spec.Timeout has passed; it
// does not end when the listener is asked to stop, so that what is in hand is
// finished.
type Handler func(ctx context.Context, e *Event) error

// Middleware wraps a handler.
type Middleware func(Handler) Handler

// Start says which events a listener sees that is new to the log.
type Start int

// Where a new listener starts.
const (
	New Start = iota // events from now on
	All              // everything that the log still holds
)

// Spec says what a listener is. Name, Filters and Handler are required.
type Spec struct {
	Name    string   // durable: letters, digits, '-' and '_'
	Filters []string // subjects of the log; see event.Filter
	Handler Handler

	Start       Start
	Concurrency int           // events in hand at once; 1 when 0
	MaxAttempts int           // 0: a passing fault is tried for ever
	Timeout     time.Duration // of one attempt; 0: none
	AckWait     time.Duration // without a sign of life before an event goes to another process; 30 s when 0

	// Backoff is the delay after an attempt (from 1) that failed; Backoff(0)
	// is never asked. Nil: from 50 ms doubling up to 30 s, with jitter.
	Backoff func(attempt int) time.Duration

	Middleware []Middleware  // the first is the outermost
	Drain      time.Duration // for what is in hand when the listener stops; 30 s when 0
}

func (s Spec) withDefaults() Spec {
	s.Concurrency = max(s.Concurrency, 1)
	if s.AckWait <= 0 {
		s.AckWait = 30 * time.Second
	}
	if s.Drain <= 0 {
		s.Drain = 30 * time.Second
	}
	if s.Backoff == nil {
		s.Backoff = backoff
	}
	return s
}

func (s Spec) handler() Handler {
	h := s.Handler
	for i := len(s.Middleware) - 1; i >= 0; i-- {
		h = s.Middleware[i](h)
	}
	return h
}

func backoff(attempt int) time.Duration {
	const first, most = 50 * time.Millisecond, 30 * time.Second
	d := most
	if attempt < 12 {
		d = min(first<<(attempt-1), most)
	}
	return d/2 + rand.N(d)
}

// permanent is a fault that no further attempt mends.
type permanent struct{ error }

func (p permanent) Unwrap() error { return p.error }

// Permanent marks an error as one that no further attempt mends: the event goes
// to the dead letters at once. It returns nil for nil.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return permanent{err}
}

// IsPermanent reports whether an error was marked by Permanent.
func IsPermanent(err error) bool {
	var p permanent
	return errors.As(err, &p)
}

// Bus is what a listener needs of the bus; *bus.Bus is one.
type Bus interface {
	JetStream() jetstream.JetStream

	// Sync returns once what the bus has accepted would outlive a power cut.
	Sync(ctx context.Context) error
}

// Lag reports how many events a listener has yet to be given, and how many it
// has been given and not acknowledged.
func Lag(ctx context.Context, b Bus, name string) (pending, unacked uint64, err error) {
	consumer, err := b.JetStream().Consumer(ctx, stream, name)
	if err != nil {
		return 0, 0, err
	}
	info, err := consumer.Info(ctx)
	if err != nil {
		return 0, 0, err
	}
	return info.NumPending, uint64(info.NumAckPending), nil
}
