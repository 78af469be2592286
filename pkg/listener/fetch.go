package listener

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"belfry/internal/backoff"
)

const (
	// requestExpiry is how long a request for events lasts. A restarted bus has
	// lost the request: then this and responseGrace are the longest delay.
	requestExpiry = 2 * time.Second
	responseGrace = time.Second // for the reply that a request has expired
	watchInterval = 500 * time.Millisecond

	awaitInterval = 20 * time.Millisecond
	drainTimeout  = 2 * time.Second // for messages in flight when a subscription ends
)

// errLostRequests says that the bus did not reply to requests. Their events may
// still arrive, so the next requests need another subscription.
var errLostRequests = errors.New("requests for events are lost")

// listen receives events until ctx ends or the bus rejects a request. An event is
// requested only when there is a slot for it: while it waited for one, AckWait
// would run out.
func (r *runner) listen(ctx context.Context) error {
	setup, cancel := context.WithTimeout(ctx, setupTimeout)
	defer cancel()
	if err := r.setup(setup); err != nil {
		return err
	}
	var following sync.WaitGroup
	defer following.Wait()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	following.Go(func() { r.followClock(ctx) })
	for {
		err := r.subscribe(ctx)
		if !errors.Is(err, errLostRequests) || !r.bus.JetStream().Conn().IsConnected() {
			return err
		}
	}
}

// subscribe is listen on one subscription.
func (r *runner) subscribe(ctx context.Context) error {
	requesting, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	s, err := newSubscription(r, fail)
	if err != nil {
		return err
	}
	defer s.close()
	go s.watch(requesting)
	for {
		n := r.window.acquire(requesting)
		if requesting.Err() != nil {
			r.window.release(n)
			return context.Cause(requesting)
		}
		if err := s.request(n); err != nil {
			return err
		}
	}
}

// subscription receives the events of a consumer, and requests them. One for all
// requests costs the bus less than one for each; and when it is drained, every
// message that the bus has sent is received.
type subscription struct {
	r       *runner
	conn    *nats.Conn
	fail    context.CancelCauseFunc // ends subscribe
	subject string                  // of requests
	inbox   string                  // of request n: <inbox>.<n>
	sub     *nats.Subscription
	ended   chan struct{} // closed when sub is drained

	mu       sync.Mutex
	requests uint64        // so far
	expected int           // events requested, each with its slot, that have not arrived
	silent   time.Duration // since the last message
	ending   bool          // events go back
	closed   bool
}

func newSubscription(r *runner, fail context.CancelCauseFunc) (*subscription, error) {
	conn := r.bus.JetStream().Conn()
	s := &subscription{
		r: r, conn: conn, fail: fail, inbox: conn.NewInbox(), ended: make(chan struct{}),
		subject: apiConsumer + "MSG.NEXT." + r.stream + "." + r.consumer,
	}
	var err error
	if s.sub, err = conn.Subscribe(s.inbox+".*", s.receive); err != nil {
		return nil, err
	}
	s.sub.SetClosedHandler(func(string) { close(s.ended) })
	if err := limitPending(s.sub, -1); err != nil { // the window bounds it
		return nil, err
	}
	return s, nil
}

// limitPending sets how many messages and bytes of a subscription may be pending; negative: any number. After an error
// it ends the subscription: nobody else knows of it, and the bus would deliver to it until the connection is closed.
func limitPending(sub *nats.Subscription, limit int) error {
	err := sub.SetPendingLimits(limit, limit)
	if err != nil {
		_ = sub.Unsubscribe()
	}
	return err
}

// request requests n events, for which slots are taken. The bus queues it after
// the requests before.
func (s *subscription) request(n int) error {
	s.mu.Lock()
	s.requests++
	s.expected += n
	s.silent = 0
	reply := s.inbox + "." + strconv.FormatUint(s.requests, 10)
	s.mu.Unlock()
	return s.conn.PublishRequest(s.subject, reply, fmt.Appendf(nil, `{"batch":%d,"expires":%d}`, n, requestExpiry))
}

// watch fails the subscription when requests are lost: the bus replies to each of
// them, at least when it expires.
func (s *subscription) watch(ctx context.Context) {
	for backoff.Sleep(ctx, watchInterval) == nil {
		s.mu.Lock()
		s.silent += watchInterval
		lost := s.expected > 0 && s.silent > requestExpiry+responseGrace
		s.mu.Unlock()
		if lost {
			s.fail(errLostRequests)
		}
	}
}

// receive takes a message: an event, which has a reply subject, or the end of a
// request.
func (s *subscription) receive(m *nats.Msg) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.silent = 0
	if m.Reply != "" {
		s.enqueue(m)
		return
	}
	switch status, text := m.Header.Get("Status"), m.Header.Get("Description"); {
	case status == "100": // heartbeat
	case status == "404", status == "408", text == "Batch Completed":
		missing, _ := strconv.Atoi(m.Header.Get("Nats-Pending-Messages"))
		s.forget(missing)
	default:
		s.fail(fmt.Errorf("the bus delivers no events: %s %s", status, text))
	}
}

func (s *subscription) enqueue(m *nats.Msg) {
	if s.closed || s.expected == 0 {
		_ = m.Nak() // it has no slot
		return
	}
	if s.ending {
		_ = m.Nak()
		s.forget(1)
		return
	}
	s.expected--
	s.r.hand(s.r.receive(m))
}

// forget frees the slots of events that will not arrive.
func (s *subscription) forget(n int) {
	n = min(n, s.expected)
	s.expected -= n
	s.r.window.release(n)
}

// await waits until the bus has replied to every request, while events that arrive go back. A server
// that requests reach from another account through another server does not notice that nobody
// receives the replies: until the requests expire it would deliver events which nobody else gets
// before AckWait has passed.
func (s *subscription) await() {
	ctx, cancel := context.WithTimeout(context.Background(), requestExpiry+responseGrace)
	defer cancel()
	s.mu.Lock()
	s.ending = true
	s.mu.Unlock()
	for s.conn.IsConnected() {
		s.mu.Lock()
		open := s.expected
		s.mu.Unlock()
		if open == 0 || backoff.Sleep(ctx, awaitInterval) != nil {
			return
		}
	}
}

// close ends the subscription once the messages that the bus has sent are received.
func (s *subscription) close() {
	if s.r.bus.Unmanaged() {
		s.await()
	}
	if s.sub.Drain() == nil && s.conn.IsConnected() {
		timer := time.NewTimer(drainTimeout)
		defer timer.Stop()
		select {
		case <-s.ended:
		case <-timer.C:
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.forget(s.expected)
}
