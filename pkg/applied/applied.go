// Package applied lets a request wait for the work that its write causes.
//
// The request puts a subject of its own into the context of its write, which
// travels in the event. Each worker that has applied the event reports there,
// and names the events of the writes that it made itself; those carry the same
// subject. The request is done when every worker that has work with any of
// these events has reported it.
//
// Reports are sent without a promise: one that is lost costs the request its
// patience and nothing else.
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

// Prefix begins every subject that hears reports.
const Prefix = "applied."

// report says that a worker has applied an event.
type report struct {
	Event  string        `json:"event"`
	Worker string        `json:"worker"`
	Caused []store.Cause `json:"caused,omitempty"` // by the worker, for this event
	Part   bool          `json:"part,omitempty"`   // more of Caused follows; not yet applied
}

// chunk is how many causes one report names: far below the bus's largest message.
const causesPerReport = 1000

// Anyone on the bus may send reports. What a wait keeps of them is bounded: a
// cascade over some 100,000 objects fits.
const (
	maxMarks   = 250_000
	maxNameLen = 100 // bytes of an event's id or a worker's name
)

// Report wraps a worker's handling so that whoever waits hears of it. An
// attempt that fails reports what it caused, for the next one does not know.
func Reporting(conn *nats.Conn, worker string, handle func(context.Context, *event.Envelope) error) func(context.Context, *event.Envelope) error {
	return func(ctx context.Context, e *event.Envelope) error {
		if !waitSubject(e.Ctx.Wait) {
			return handle(ctx, e)
		}
		ctx, causes := store.WithCauses(ctx)
		err := handle(ctx, e)
		r := report{Event: e.ID, Worker: worker, Caused: causes.All(), Part: err != nil}
		if r.Part && len(r.Caused) == 0 {
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

// waitSubject reports whether a subject is one that a Waiter made. It comes
// with the event, and a worker may publish where others may not.
func waitSubject(subject string) bool {
	token, count, _ := strings.Cut(strings.TrimPrefix(subject, Prefix), ".")
	plain := func(s string) bool {
		return s != "" && strings.Trim(s, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz") == ""
	}
	return strings.HasPrefix(subject, Prefix) && plain(token) && plain(count)
}

func send(conn *nats.Conn, subject string, r report) {
	if data, err := json.Marshal(r); err == nil {
		// A report that can't be sent now is not worth keeping.
		_ = conn.Publish(subject, data)
	}
}

// Waiter is the requests' side.
type Waiter struct {
	workers func(store.Cause) []string
	prefix  string
	count   atomic.Uint64
	sub     *nats.Subscription

	mu    sync.Mutex
	waits map[string]*wait // by subject
}

// NewWaiter listens for reports. workers names those that have work with an
// event.
func NewWaiter(conn *nats.Conn, workers func(store.Cause) []string) (*Waiter, error) {
	w := &Waiter{workers: workers, prefix: Prefix + nats.NewInbox()[len(nats.InboxPrefix):] + ".", waits: map[string]*wait{}}
	sub, err := conn.Subscribe(w.prefix+"*", func(m *nats.Msg) { w.receive(m) })
	if err != nil {
		return nil, errs.Wrap(err, errs.Unavailable, "can't listen for what workers have applied")
	}
	w.sub = sub
	return w, nil
}

// Close stops listening. Requests that wait run out of time.
func (w *Waiter) Close() error { return w.sub.Unsubscribe() }

// Begin opens a wait. subject goes into the write's event.Ctx; wait blocks
// until everything that the causes bring has been applied, or reports ctx's
// end; end must be called in any case.
func (w *Waiter) Begin() (subject string, blocks func(ctx context.Context, causes []store.Cause) error, end func()) {
	subject = w.prefix + strconv.FormatUint(w.count.Add(1), 10)
	s := &wait{workers: w.workers, expected: map[mark]bool{}, applied: map[mark]bool{}, ready: make(chan struct{})}
	w.mu.Lock()
	w.waits[subject] = s
	w.mu.Unlock()
	return subject, s.block, func() {
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

// mark is one worker's work with one event.
type mark struct{ event, worker string }

// wait is one request's. Reports may come in any order, more than once, and
// before the request knows its own causes.
type wait struct {
	workers func(store.Cause) []string
	ready   chan struct{}

	mu         sync.Mutex
	started    bool // the request's own causes are expected
	done       bool // ready is closed
	overflowed bool // more was reported than is kept: nobody knows when it is done
	expected   map[mark]bool
	applied    map[mark]bool
	pending    int // expected and not applied
}

func (s *wait) block(ctx context.Context, causes []store.Cause) error {
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

func (s *wait) receive(r report) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expect(r.Caused)
	if m := (mark{r.Event, r.Worker}); !r.Part && !s.applied[m] && s.admit(m) {
		s.applied[m] = true
		if s.expected[m] {
			s.pending--
		}
	}
	s.finishIfDone()
}

func (s *wait) expect(causes []store.Cause) {
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

// room reports whether another mark may be kept.
func (s *wait) admit(m mark) bool {
	switch {
	case len(m.event) > maxNameLen || len(m.worker) > maxNameLen:
		return false // no event of ours, and no worker
	case len(s.expected)+len(s.applied) >= maxMarks:
		s.overflowed = true
	}
	return !s.overflowed
}

func (s *wait) finishIfDone() {
	if s.started && s.pending == 0 && !s.done && !s.overflowed {
		s.done = true
		close(s.ready)
	}
}
