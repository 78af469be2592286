// Package listener runs functions on events. belfry's own workers use it in the
// same way as other programs.
//
// A listener is a durable consumer of the event log. An event is acknowledged
// after its handler returned nil, and redelivered, with growing delay, after a
// transient error. A permanent error (see Permanent), and the last of a limited
// number of attempts, make the event a dead letter with the error as its reason.
// Delivery is at least once: a handler must be idempotent.
package listener

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"strings"
	"time"

	"belfry/internal/backoff"
	"belfry/pkg/bus"
	"belfry/pkg/errs"
	"belfry/pkg/event"
)

// Event is a durable event and its delivery.
type Event struct {
	event.Envelope

	Sequence uint64 // in the log
	Attempt  int    // 1 for the first
}

// Handler handles one event. It is called by as many goroutines at once as
// Spec.Concurrency says. Its context ends when Spec.Timeout has passed; it does
// not end when the listener is stopped, so that events in flight are finished.
type Handler func(ctx context.Context, e *Event) error

// Middleware wraps a handler.
type Middleware func(Handler) Handler

// BatchHandler handles several events at once. It returns nil when all are done,
// else one error, or nil, for each of them in their order; missing ones are nil.
// An event that failed in a batch becomes a batch of its own at every fourth
// attempt and at the last, so that other events do not fail it.
type BatchHandler func(ctx context.Context, events []*Event) []error

// Spec defines a listener. Name and one of Handler and Batch are required.
type Spec struct {
	Name string // of the durable consumer: letters, digits, '-' and '_'

	// Events and Stores select the events; without both, all are selected but those
	// about the security of accounts. Filters, subjects of the log, may be set instead.
	// Events of event.Auth are selected where they are named, as by event.AuthPattern, and
	// by no wildcard beyond that.
	Events  []event.Name
	Stores  []string
	Filters []string

	Handler   Handler
	Batch     BatchHandler // instead of Handler
	BatchSize int          // events of a batch at most; 0: 100

	// Ordered delivers the events of an object one after the other in the order
	// of the log, however many processes run the listener: an event that fails
	// is retried before the next of its partition. There are event.Partitions
	// of these, each a durable consumer <Name>-<n>.
	//
	// The order holds across restarts and crashes, with two exceptions:
	//
	//   - A process stalls for longer than AckWait in a handler, so that its heartbeats stop
	//     (a paused machine, a network partition). The event is redelivered to another
	//     process, and the first one still finishes its handler when it resumes.
	//   - After a crash, belfry may publish an event again after a later one of its object,
	//     with its old id and revision.
	Ordered bool

	Start       Start         // for a consumer that does not exist yet
	Concurrency int           // calls of the handler at once; 0: 1. Ordered: one per partition
	MaxAttempts int           // 0: transient errors are retried without limit
	Timeout     time.Duration // of one attempt; 0: none
	AckWait     time.Duration // without a heartbeat until an event is redelivered to another process; 0: 30 s

	// Prefetch is how many events at most are fetched beyond those being
	// handled, so that a fast handler need not wait for the next. As many are
	// fetched as are handled in a tenth of a second, so that a slow handler
	// holds none back from other processes. Prefetched events are heartbeated, and
	// returned at a stop. 0: a default; negative: none.
	Prefetch int

	// Backoff returns the delay after a failed attempt, counted from 1.
	// Nil: ExponentialBackoff from 50 ms to 30 s.
	Backoff func(attempt int) time.Duration

	// OnSetupError is called with the error when a consumer (its stream and name,
	// such as EVENTS.mail) can't be set up although the bus is connected, and
	// with nil once it is set up. The error is logged in any case.
	OnSetupError func(consumer string, err error)

	Middleware []Middleware  // the first is the outermost; not for Batch
	Drain      time.Duration // for events in flight when the listener stops; 0: 30 s
}

const (
	defaultBatch    = 100
	defaultPrefetch = 256
	backoffMin      = 50 * time.Millisecond
	backoffMax      = 30 * time.Second
)

func (s Spec) withDefaults() Spec {
	s.Concurrency = max(s.Concurrency, 1)
	if s.BatchSize <= 0 {
		s.BatchSize = defaultBatch
	}
	switch {
	case s.Prefetch < 0:
		s.Prefetch = 0
	case s.Prefetch == 0 && s.Batch != nil:
		s.Prefetch = max(2*s.BatchSize, defaultPrefetch)
	case s.Prefetch == 0:
		s.Prefetch = defaultPrefetch
	}
	if s.AckWait <= 0 {
		s.AckWait = 30 * time.Second
	}
	if s.Drain <= 0 {
		s.Drain = 30 * time.Second
	}
	if s.Backoff == nil {
		s.Backoff = ExponentialBackoff(backoffMin, backoffMax)
	}
	if s.Filters == nil {
		s.Filters = filters(s.Events, s.Stores)
	}
	s.Filters = withoutAuth(s.Filters)
	return s
}

// validate reports errs.Invalid for a spec that can't work.
func (s Spec) validate() error {
	switch {
	case s.Name == "":
		return errs.New(errs.Invalid, "a listener needs a name")
	case !plain.MatchString(s.Name):
		return errs.New(errs.Invalid,
			"a listener's name consists of letters, digits, '-' and '_'; %q has other characters", s.Name)
	case (s.Handler == nil) == (s.Batch == nil):
		return errs.New(errs.Invalid, "listener %s needs a Handler or a Batch, and not both", s.Name)
	case s.Ordered && s.Batch != nil:
		return errs.New(errs.Invalid, "listener %s is ordered and can't take batches", s.Name)
	case s.Filters != nil && (len(s.Filters) == 0 || len(s.Events)+len(s.Stores) > 0):
		return errs.New(errs.Invalid, "listener %s needs Filters, or Events and Stores in their place", s.Name)
	}
	for _, st := range s.Stores {
		if !plain.MatchString(st) {
			return errs.New(errs.Invalid, "listener %s: %q is not the name of a store", s.Name, st)
		}
	}
	for _, name := range s.Events {
		for token := range strings.SplitSeq(string(name), ".") {
			if token != "*" && !plain.MatchString(token) {
				return errs.New(errs.Invalid, "listener %s: %q is not the name of an event", s.Name, name)
			}
		}
		if !strings.Contains(string(name), "*") && !slices.Contains(event.Durable(), name) {
			return errs.New(errs.Invalid, "listener %s: the log has no events %q; it has %v", s.Name, name,
				event.Durable())
		}
	}
	for _, filter := range s.Filters {
		first, _, _ := strings.Cut(filter, ".")
		if !slices.Contains([]string{strings.TrimSuffix(event.LogPrefix, "."), "*", ">"}, first) {
			return errs.New(errs.Invalid, "listener %s: the log has no subjects %q; they are such as "+
				"events.*.Store.Saved.Recipes.*", s.Name, filter)
		}
	}
	return nil
}

// plain is a name that can be one token of a subject and part of a file name.
var plain = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// filters are the subjects of events of some stores.
func filters(events []event.Name, stores []string) []string {
	if len(events) == 0 && len(stores) == 0 {
		return []string{event.LogPrefix + ">"}
	}
	if len(events) == 0 {
		// All names but Register have two tokens.
		events = []event.Name{"*.*", event.Register}
	}
	if len(stores) == 0 {
		stores = []string{"*"}
	}
	var all []string
	for _, name := range events {
		for _, st := range stores {
			all = append(all, event.Filter(name, st))
		}
	}
	return all
}

// withoutAuth returns filters that select the events of event.Auth only where they are named.
func withoutAuth(filters []string) []string {
	all := make([]string, 0, len(filters))
	for _, f := range filters {
		all = append(all, event.Narrow(f)...)
	}
	return all
}

func (s Spec) handler() Handler {
	h := s.Handler
	if s.Timeout > 0 {
		h = Timeout(s.Timeout)(h)
	}
	for i := len(s.Middleware) - 1; i >= 0; i-- {
		h = s.Middleware[i](h)
	}
	return Recover()(h)
}

// ExponentialBackoff is a Spec.Backoff: the minimum doubled with each attempt up
// to the maximum, of which a random part up to half is taken off.
func ExponentialBackoff(minimum, maximum time.Duration) func(attempt int) time.Duration {
	return func(attempt int) time.Duration { return backoff.Delay(attempt, minimum, maximum) }
}

// permanent is an error that another attempt does not fix.
type permanent struct{ error }

func (p permanent) Unwrap() error { return p.error }

// Permanent marks an error as one that another attempt does not fix: the event
// becomes a dead letter at once. It returns nil for nil.
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

// Bus is the part of a bus that a listener uses; Connect returns one.
type Bus interface {
	bus.Requester

	// Sync returns once everything that the bus has accepted before would survive
	// a power failure.
	Sync(ctx context.Context) error

	// Unmanaged reports whether the streams may be in another account, as they are for
	// a listener with a user of its own.
	Unmanaged() bool
}
