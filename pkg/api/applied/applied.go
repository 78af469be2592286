// Package applied lets a request wait until the work that its write causes has been
// applied.
//
// The request puts a subject of its own into the context of its write, which the event
// carries. Each worker that has applied the event publishes a report there, with the
// events of its own writes; those carry the same subject. The wait ends when every worker
// that handles any of these events has reported it.
//
// Reports are not durable: a lost report makes the wait run into its timeout. A worker
// whose writes cause further work numbers its attempts. An event counts as applied only
// when each attempt until the successful one was reported. The attempt of a crashed
// worker is missing, and with it the events of its writes.
package applied

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/nats-io/nats.go"

	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/store"
)

// Prefix begins every subject of reports.
const Prefix = "applied."

// report says that a worker has applied an event.
type report struct {
	Event  string        `json:"event"`
	Worker string        `json:"worker"`
	Caused []store.Cause `json:"caused,omitempty"` // writes of the worker for this event
	Part   bool          `json:"part,omitempty"`   // more of Caused follows; not yet applied

	Attempt int  `json:"attempt,omitempty"` // of the worker at the event, from 1; 0: no attempt can be missing
	Failed  bool `json:"failed,omitempty"`  // the attempt has failed, and this is its last report
}

// causesPerReport is how many causes one report carries: far below the bus's largest message.
const causesPerReport = 1000

// Any client of the bus may send reports, so the memory of a wait is bounded. A
// cascade over 100,000 objects fits.
const (
	maxMarks   = 250_000
	maxNameLen = 100 // bytes of an event's id or a worker's name
)

// Reporting wraps a worker's handler so that it reports each event that carries a
// wait subject. A failed attempt reports what it caused, because the next attempt
// does not know it. attempt counts the deliveries of the event, from 1; it is 0 for a
// worker whose writes cause no work of others.
func Reporting(conn *nats.Conn, worker string,
	handle func(context.Context,
		*event.Envelope) error) func(ctx context.Context, e *event.Envelope, attempt int) error {
	return func(ctx context.Context, e *event.Envelope, attempt int) error {
		if !waitSubject(e.Ctx.Wait) {
			return handle(ctx, e)
		}
		ctx, causes := store.WithCauses(ctx)
		err := handle(ctx, e)
		failed := err != nil
		r := report{Event: e.ID, Worker: worker, Caused: causes.All(), Part: failed, Attempt: attempt,
			Failed: failed && attempt > 0}
		if failed && attempt == 0 && len(r.Caused) == 0 {
			return err
		}
		for all := r.Caused; len(all) > causesPerReport; all = r.Caused {
			send(conn, e.Ctx.Wait, report{Event: r.Event, Worker: worker, Caused: all[:causesPerReport], Part: true})
			r.Caused = all[causesPerReport:]
		}
		send(conn, e.Ctx.Wait, r)
		return err
	}
}

// waitSubject reports whether a subject is one that a Waiter made. The event carries
// it, and a worker may publish where the client may not.
func waitSubject(subject string) bool {
	token, count, _ := strings.Cut(strings.TrimPrefix(subject, Prefix), ".")
	plain := func(s string) bool {
		return s != "" && strings.Trim(s, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz") == ""
	}
	return strings.HasPrefix(subject, Prefix) && plain(token) && plain(count)
}

func send(conn *nats.Conn, subject string, r report) {
	if data, err := json.Marshal(r); err == nil {
		// Reports are not durable: a failure to send one is ignored.
		_ = conn.Publish(subject, data)
	}
}

// Waiter receives reports for the requests of this process.
type Waiter struct {
	workers  func(store.Cause) []string
	maxMarks int // of one wait
	prefix   string
	count    atomic.Uint64
	sub      *nats.Subscription

	mu    sync.Mutex
	waits map[string]*pendingWait // by subject
}

// NewWaiter subscribes to reports. workers returns the names of the workers that
// handle an event.
func NewWaiter(conn *nats.Conn, workers func(store.Cause) []string) (*Waiter, error) {
	w := &Waiter{workers: workers, maxMarks: maxMarks, prefix: Prefix + nats.NewInbox()[len(nats.InboxPrefix):] + ".",
		waits: map[string]*pendingWait{}}
	sub, err := conn.Subscribe(w.prefix+"*", func(m *nats.Msg) { w.receive(m) })
	if err != nil {
		return nil, errs.Wrap(err, errs.Unavailable, "applied: subscribing to reports failed")
	}
	w.sub = sub
	return w, nil
}

// Close unsubscribes. Pending waits run into their timeouts.
func (w *Waiter) Close() error { return w.sub.Unsubscribe() }

// Begin starts to collect reports for one request. subject belongs into the event.Ctx of
// the write. wait blocks until all work that the causes lead to has been applied, or
// returns ctx.Err() when ctx ends first. The caller must call end in any case.
func (w *Waiter) Begin() (subject string, wait func(ctx context.Context, causes []store.Cause) error, end func()) {
	subject = w.prefix + strconv.FormatUint(w.count.Add(1), 10)
	p := &pendingWait{workers: w.workers, maxMarks: w.maxMarks, expected: map[mark]bool{}, applied: map[mark]bool{},
		attempts: map[mark]map[int]bool{}, ready: make(chan struct{})}
	w.mu.Lock()
	w.waits[subject] = p
	w.mu.Unlock()
	return subject, p.wait, func() {
		w.mu.Lock()
		delete(w.waits, subject)
		w.mu.Unlock()
	}
}

func (w *Waiter) receive(m *nats.Msg) {
	w.mu.Lock()
	s := w.waits[m.Subject]
	w.mu.Unlock()
	var r report
	if s == nil || json.Unmarshal(m.Data, &r) != nil {
		return
	}
	s.receive(r)
}

// mark identifies the handling of one event by one worker.
type mark struct{ event, worker string }

// pendingWait is the wait of one request. Reports arrive in any order, more than once, and
// before the request knows its own causes.
type pendingWait struct {
	maxMarks int
	workers  func(store.Cause) []string
	ready    chan struct{}

	mu         sync.Mutex
	started    bool // the request's own causes are expected
	done       bool // ready is closed
	overflowed bool // maxMarks marks are stored: the end cannot be determined
	expected   map[mark]bool
	applied    map[mark]bool
	pending    int                   // expected and not applied
	attempts   map[mark]map[int]bool // attempts that have ended → success
	ended      int                   // of all marks
}

func (s *pendingWait) wait(ctx context.Context, causes []store.Cause) error {
	s.mu.Lock()
	s.started = true
	s.expect(causes)
	s.finishIfDone()
	s.mu.Unlock()
	select {
	case <-s.ready:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *pendingWait) receive(r report) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expect(r.Caused)
	if m := (mark{r.Event, r.Worker}); !s.applied[m] && s.hasApplied(m, r) && s.admit(m) {
		s.applied[m] = true
		if s.expected[m] {
			s.pending--
		}
	}
	s.finishIfDone()
}

// hasApplied reports whether a report completes an event: an attempt has succeeded, and the reports of all earlier
// attempts have arrived.
func (s *pendingWait) hasApplied(m mark, r report) bool {
	if r.Attempt <= 0 {
		return !r.Part
	}
	if r.Part && !r.Failed || !s.admit(m) {
		return false
	}
	all := s.attempts[m]
	if all == nil {
		all = map[int]bool{}
		s.attempts[m] = all
	}
	if _, known := all[r.Attempt]; !known {
		s.ended++
	}
	all[r.Attempt] = all[r.Attempt] || !r.Failed
	for attempt := 1; ; attempt++ {
		if succeeded, ended := all[attempt]; !ended || succeeded {
			return succeeded
		}
	}
}

func (s *pendingWait) expect(causes []store.Cause) {
	for _, c := range causes {
		for _, worker := range s.workers(c) {
			m := mark{c.ID, worker}
			if s.expected[m] || !s.admit(m) {
				continue
			}
			s.expected[m] = true
			if !s.applied[m] {
				s.pending++
			}
		}
	}
}

// admit reports whether another mark may be stored.
func (s *pendingWait) admit(m mark) bool {
	switch {
	case len(m.event) > maxNameLen || len(m.worker) > maxNameLen:
		return false // neither an event nor a worker of belfry
	case len(s.expected)+len(s.applied)+s.ended >= s.maxMarks:
		s.overflowed = true
	}
	return !s.overflowed
}

func (s *pendingWait) finishIfDone() {
	if s.started && s.pending == 0 && !s.done && !s.overflowed {
		s.done = true
		close(s.ready)
	}
}
