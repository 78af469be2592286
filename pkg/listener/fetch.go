package listener

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"belfry/pkg/backoff"
)

const (
	// askAgain is how long a request for events lasts. A bus that comes back
	// has forgotten it: then this, and the patience, is the longest delay.
	askAgain    = 2 * time.Second
	askPatience = time.Second // for the answer that a request is over
	askLook     = 500 * time.Millisecond

	lastWords = 2 * time.Second // for what the bus has sent when a subscription ends
)

// errUnheard is the fault of requests of which nothing was heard. Their events
// may still come, so the next ones need another subscription.
var errUnheard = errors.New("requests for events are lost")

// listen takes events from the log until ctx ends or the bus refuses to hand
// them out. No event is asked for without a slot: what waited for one would be
// handed out again after AckWait.
func (r *runner) listen(ctx context.Context) error {
	setup, cancel := context.WithTimeout(ctx, setupTimeout)
	defer cancel()
	if err := r.setup(setup); err != nil {
		return err
	}
	for {
		err := r.listenAsLong(ctx)
		if !errors.Is(err, errUnheard) || !r.bus.JetStream().Conn().IsConnected() {
			return err
		}
	}
}

// listenAsLong is listen on one subscription.
func (r *runner) listenAsLong(ctx context.Context) error {
	asking, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	s, err := newSource(r, fail)
	if err != nil {
		return err
	}
	defer s.close()
	go s.watch(asking)
	for {
		n := r.slots.take(asking)
		if asking.Err() != nil {
			r.slots.give(n)
			return context.Cause(asking)
		}
		if err := s.ask(n); err != nil {
			return err
		}
	}
}

// source is a subscription on which the events of a consumer arrive, and the
// requests for them. One for all requests costs the bus less than one each; and
// when it ends, nothing that the bus has sent is left unheard.
type source struct {
	r       *runner
	conn    *nats.Conn
	fail    context.CancelCauseFunc // ends the asking
	subject string                  // where requests go
	inbox   string                  // of request n: <inbox>.<n>
	sub     *nats.Subscription
	ended   chan struct{} // closed when the subscription has

	mu     sync.Mutex
	asked  uint64        // requests so far
	left   int           // events asked for, each with its slot, that have not come yet
	quiet  time.Duration // for how long nothing was heard
	closed bool
}

func newSource(r *runner, fail context.CancelCauseFunc) (*source, error) {
	conn := r.bus.JetStream().Conn()
	s := &source{
		r: r, conn: conn, fail: fail, inbox: conn.NewInbox(), ended: make(chan struct{}),
		subject: jetstream.DefaultAPIPrefix + "CONSUMER.MSG.NEXT." + r.stream + "." + r.consumer,
	}
	var err error
	if s.sub, err = conn.Subscribe(s.inbox+".*", s.hear); err != nil {
		return nil, err
	}
	s.sub.SetClosedHandler(func(string) { close(s.ended) })
	return s, s.sub.SetPendingLimits(-1, -1) // the slots bound it
}

// ask asks for n events, for which slots are taken. The bus goes on with it when
// it is done with the requests before.
func (s *source) ask(n int) error {
	s.mu.Lock()
	s.asked++
	s.left += n
	s.quiet = 0
	reply := s.inbox + "." + strconv.FormatUint(s.asked, 10)
	s.mu.Unlock()
	return s.conn.PublishRequest(s.subject, reply, fmt.Appendf(nil, `{"batch":%d,"expires":%d}`, n, askAgain))
}

// watch ends the asking when requests are lost: the bus answers each, if only to
// say that it is over.
func (s *source) watch(ctx context.Context) {
	for backoff.Sleep(ctx, askLook) == nil {
		s.mu.Lock()
		s.quiet += askLook
		lost := s.left > 0 && s.quiet > askAgain+askPatience
		s.mu.Unlock()
		if lost {
			s.fail(errUnheard)
		}
	}
}

// hear takes what arrives: an event, under the subject that the log has it
// under, or what became of a request.
func (s *source) hear(m *nats.Msg) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.quiet = 0
	if m.Reply != "" {
		s.take(m)
		return
	}
	switch status, text := m.Header.Get("Status"), m.Header.Get("Description"); {
	case status == "100": // a sign of life
	case status == "404", status == "408", text == "Batch Completed":
		missing, _ := strconv.Atoi(m.Header.Get("Nats-Pending-Messages"))
		s.giveUp(missing)
	default:
		s.fail(fmt.Errorf("the bus hands out no events: %s %s", status, text))
	}
}

// take gives an event to whoever has a hand free.
func (s *source) take(m *nats.Msg) {
	if s.closed || s.left == 0 {
		_ = m.Nak() // nobody waits for it any more
		return
	}
	s.left--
	s.r.queue <- s.r.receive(m) // has room for as many as there are slots
}

// giveUp gives back the slots of events that will not come.
func (s *source) giveUp(n int) {
	n = min(n, s.left)
	s.left -= n
	s.r.slots.give(n)
}

// close ends the subscription once what the bus has sent on it is taken.
func (s *source) close() {
	if s.sub.Drain() == nil && s.conn.IsConnected() {
		timer := time.NewTimer(lastWords)
		defer timer.Stop()
		select {
		case <-s.ended:
		case <-timer.C:
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.giveUp(s.left)
}
