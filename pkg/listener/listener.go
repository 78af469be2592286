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
	"regexp"
	"slices"
	"strings"
	"time"

	"belfry/pkg/backoff"
	"belfry/pkg/bus"
	"belfry/pkg/errs"
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

// BatchHandler handles several events at once. It returns nil when all are done,
// else an error, or nil, for each of them in their order: one that is missing
// stands for nil. An event that failed with others is a batch of its own at
// every fourth attempt and at the last, so that it can't be them.
type BatchHandler func(ctx context.Context, events []*Event) []error

// Spec says what a listener is. Name and a handler are required.
type Spec struct {
	Name string // durable: letters, digits, '-' and '_'

	// Events and Stores select what the listener hears; none of either is all.
	// Filters, subjects of the log, may be given in their place.
	Events  []event.Name
	Stores  []string
	Filters []string

	Handler   Handler
	Batch     BatchHandler // instead of Handler
	BatchSize int          // events of a batch at most; 100 when 0

	// Ordered hands out the events of an object one after the other in the
	// order of the log, whatever number of processes runs the listener: an
	// event that fails is tried again before the next of its partition. There
	// are event.Partitions of these, each a durable consumer <Name>-<n>.
	//
	// The order holds across restarts and crashes. It can break where a process
	// stands still for longer than AckWait while it handles an event, with its
	// signs of life (a paused machine, a cut network): the event goes to
	// another process, and the first one, once it wakes, still finishes what
	// it was doing. And an event that a crash of belfry published again may
	// come behind a later one of its object; its id and revision are the old ones.
	Ordered bool

	Start       Start
	Concurrency int           // calls of the handler at once; 1 when 0. Ordered: one a partition
	MaxAttempts int           // 0: a passing fault is tried for ever
	Timeout     time.Duration // of one attempt; 0: none
	AckWait     time.Duration // without a sign of life before an event goes to another process; 30 s when 0

	// Prefetch is how many events at most are fetched beyond those in hand, so
	// that a quick handler need not wait for the next: as many as are handled in
	// a tenth of a second, so a slow one keeps none from other processes. They
	// are kept alive meanwhile, and given back at a stop. 0 is a sensible
	// number, a negative one none.
	Prefetch int

	// Backoff returns the delay after a failed attempt, counted from 1.
	// Nil: ExponentialBackoff from 50 ms to 30 s.
	Backoff func(attempt int) time.Duration

	// Lacks is told why a consumer (its stream and name, EVENTS.mail) can't be set up
	// although the bus is there, and nil once it is. Nil: the log alone is told.
	Lacks func(consumer string, err error)

	Middleware []Middleware  // the first is the outermost; not for Batch
	Drain      time.Duration // for what is in hand when the listener stops; 30 s when 0
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
	return s
}

// check reports a spec that can't work.
func (s Spec) check() error {
	switch {
	case s.Name == "":
		return errs.New(errs.Invalid, "a listener needs a name")
	case !plain.MatchString(s.Name):
		return errs.New(errs.Invalid, "a listener's name has letters, digits, '-' and '_'; %q has others", s.Name)
	case (s.Handler == nil) == (s.Batch == nil):
		return errs.New(errs.Invalid, "listener %s needs a Handler or a Batch, and not both", s.Name)
	case s.Ordered && s.Batch != nil:
		return errs.New(errs.Invalid, "listener %s is ordered and can't take batches", s.Name)
	case s.Filters != nil && (len(s.Filters) == 0 || len(s.Events)+len(s.Stores) > 0):
		return errs.New(errs.Invalid, "listener %s needs Filters, or Events and Stores in their place", s.Name)
	}
	for _, st := range s.Stores {
		if !plain.MatchString(st) {
			return errs.New(errs.Invalid, "listener %s: %q is no store's name", s.Name, st)
		}
	}
	for _, name := range s.Events {
		for token := range strings.SplitSeq(string(name), ".") {
			if token != "*" && !plain.MatchString(token) {
				return errs.New(errs.Invalid, "listener %s: %q is no event's name", s.Name, name)
			}
		}
		if !strings.Contains(string(name), "*") && !slices.Contains(event.Durable, name) {
			return errs.New(errs.Invalid, "listener %s: the log has no events %q; it has %v", s.Name, name, event.Durable)
		}
	}
	return nil
}

// plain is what may be one token of a subject, and a part of a file's name.
var plain = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// filters are the subjects of events of some stores.
func filters(events []event.Name, stores []string) []string {
	if len(events) == 0 && len(stores) == 0 {
		return []string{event.LogPrefix + ">"}
	}
	if len(events) == 0 {
		// Names have two tokens, but for one of them.
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
	bus.Requester

	// Sync returns once what the bus has accepted would outlive a power cut.
	Sync(ctx context.Context) error
}
