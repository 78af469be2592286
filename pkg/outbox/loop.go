package outbox

import (
	"errors"
	"strings"
	"time"

	"belfry/internal/backoff"
	"belfry/pkg/bus"
	"belfry/pkg/event"
	"belfry/pkg/store/driver"
)

const (
	batchEvents      = 500
	batchBytes       = 2 << 20
	retryMin         = 50 * time.Millisecond
	retryMax         = 2 * time.Second
	maxRefusedLogged = 1_000

	// The fixed cost of a batch is about that of a dozen events. After a batch of
	// batchDelayFrom events, a short delay makes the next one larger; under light
	// load no event is delayed.
	batchDelayFrom = 24
	batchDelay     = 3 * time.Millisecond
)

// batch is a list of events that are published together.
type batch struct {
	items []item
	bytes int
}

func (b *batch) fits(p driver.Pending) bool {
	return len(b.items) == 0 || len(b.items) < batchEvents && b.bytes+len(p.Payload) <= batchBytes
}

func (b *batch) add(i item) {
	b.items = append(b.items, i)
	b.bytes += len(i.Payload)
}

func (b *batch) reset() {
	clear(b.items)
	b.items, b.bytes = b.items[:0], 0
}

// loop is the state of the goroutine that publishes.
type loop struct {
	*Relay
	batch    batch
	outgoing []bus.Event
	refused  map[string]bool // IDs that were logged as refused
}

// publishLoop publishes the queued events as soon as the previous batch is done: the
// more events arrive in the meantime, the larger is the next batch.
func (r *Relay) publishLoop() {
	l := &loop{Relay: r, refused: map[string]bool{}}
	tick := time.NewTicker(r.opts.SweepEvery)
	defer tick.Stop()
	for {
		for l.gather() {
			many := len(l.batch.items) >= batchDelayFrom
			if !l.publish() {
				return
			}
			if many {
				_ = backoff.Sleep(r.ctx, batchDelay)
			}
		}
		select {
		case <-r.wake:
		case <-tick.C:
			r.sweepAbandoned()
		case <-r.ctx.Done():
			return
		}
	}
}

func (r *Relay) sweepAbandoned() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, src := range r.sources {
		src.startSweep()
	}
}

// gather fills the batch from all sources in turn, and reports whether it has any
// event.
func (l *loop) gather() bool {
	l.batch.reset()
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range l.sources {
		src := l.sources[(l.firstSource+i)%len(l.sources)]
		src.startPass()
		src.take(&l.batch)
	}
	l.firstSource++
	if len(l.batch.items) > 0 {
		return true
	}
	l.advance()
	return false
}

// advance continues the passes whose page has been published, and wakes waiting
// calls of Flush.
func (l *loop) advance() {
	for _, src := range l.sources {
		if src.nextPage() {
			l.notify() // the queue of the source may be published now
		}
	}
	l.signalProgress()
}

// signalProgress wakes waiting calls of Flush.
func (l *loop) signalProgress() {
	close(l.progress)
	l.progress = make(chan struct{})
}

// publish publishes the batch and retries until that succeeds. It returns false when
// the relay is closed first.
func (l *loop) publish() bool {
	l.outgoing = l.outgoing[:0]
	for i := range l.batch.items {
		e := &l.batch.items[i].Event
		l.outgoing = append(l.outgoing, bus.Event{ID: e.ID, Subject: e.Subject, Payload: e.Payload})
	}
	start := time.Now()
	refused, ok := l.publishWithRetry()
	if !ok {
		return false
	}
	took := time.Since(start)
	l.published(refused)
	if l.opts.Observe != nil {
		l.opts.Observe(len(l.batch.items)-len(refused), took)
	}
	clear(l.outgoing)
	return true
}

// publishWithRetry publishes the batch, retrying until that succeeds, and returns the
// events that the bus refused permanently, with the reasons.
func (l *loop) publishWithRetry() (map[string]string, bool) {
	for retry := backoff.New(retryMin, retryMax); ; {
		began := time.Now()
		err := l.opts.Publisher.Publish(l.ctx, l.outgoing)
		var refused *bus.RejectedError
		switch {
		case err == nil || errors.As(err, &refused):
			if l.counters.unavailable.Swap(false) {
				l.log.Info("outbox: publishing works again")
			}
			return reasons(refused), true
		case l.ctx.Err() != nil:
			return nil, false
		}
		l.noteFailure(began, err)
		timer := time.NewTimer(retry.Next())
		select {
		case <-timer.C:
		case <-l.retryNow:
			timer.Stop()
			retry.Reset()
		case <-l.ctx.Done():
			timer.Stop()
			return nil, false
		}
	}
}

// noteFailure records a failed attempt and wakes waiting calls of Flush.
func (l *loop) noteFailure(began time.Time, err error) {
	l.counters.failures.Add(1)
	if !l.counters.unavailable.Swap(true) {
		l.log.Warn("outbox: publishing failed; events stay in their records and will be retried", "error", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failed = began
	l.signalProgress()
}

func reasons(r *bus.RejectedError) map[string]string {
	if r == nil {
		return nil
	}
	m := make(map[string]string, len(r.Events))
	for _, e := range r.Events {
		m[e.ID] = e.Reason
	}
	return m
}

// published clears the events of a published batch and sends their live messages.
func (l *loop) published(refused map[string]string) {
	for i := range l.batch.items {
		it := &l.batch.items[i]
		if reason, is := refused[it.ID]; is {
			l.logRefused(it, reason)
			continue
		}
		// The permission to subscribe to live subjects does not include these events: they are only in the log.
		if n := name(it.Subject); !n.OnlyByName() {
			l.opts.Publisher.Live(n, it.Payload)
		}
	}
	l.counters.published.Add(uint64(len(l.batch.items) - len(refused)))
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range l.batch.items {
		it := &l.batch.items[i]
		if it.queued {
			it.src.sent++
			l.held--
			l.bytes -= len(it.Payload)
		}
		if reason, is := refused[it.ID]; is {
			it.src.refuse(it.ID)
			l.refusal = reason
		} else {
			delete(it.src.refused, it.ID)
			it.Payload = nil // not needed for clearing
			it.src.clear = append(it.src.clear, it.Pending)
			it.src.notify()
		}
	}
	l.advance()
}

// logRefused logs an event that the bus refused, once: every sweep finds it in its
// record again.
func (l *loop) logRefused(it *item, reason string) {
	l.counters.refused.Add(1)
	if l.refused[it.ID] {
		return
	}
	if len(l.refused) >= maxRefusedLogged {
		clear(l.refused)
	}
	l.refused[it.ID] = true
	l.log.Error("outbox: the bus refused an event permanently; it stays in its record",
		"event", it.ID, "store", it.src.name, "uuid", it.UUID, "reason", reason)
}

// name returns the name of an event from its subject,
// events.<partition>.<Event>.<Store>.<uuid>. Only the name has dots in it.
func name(subject string) event.Name {
	s := strings.TrimPrefix(subject, event.LogPrefix)
	_, s, _ = strings.Cut(s, ".")
	for range 2 {
		s = s[:max(strings.LastIndexByte(s, '.'), 0)]
	}
	return event.Name(s)
}

// queue is a FIFO queue.
type queue struct {
	items []driver.Pending
	head  int
}

func (q *queue) len() int { return len(q.items) - q.head }

func (q *queue) push(p driver.Pending) {
	if q.head == len(q.items) {
		q.items, q.head = q.items[:0], 0
	} else if q.head > 1024 && q.head > len(q.items)/2 {
		n := copy(q.items, q.items[q.head:])
		clear(q.items[n:])
		q.items, q.head = q.items[:n], 0
	}
	q.items = append(q.items, p)
}

// first returns the oldest event of a queue that is not empty.
func (q *queue) first() driver.Pending { return q.items[q.head] }

func (q *queue) pop() driver.Pending {
	p := q.items[q.head]
	q.items[q.head] = driver.Pending{}
	q.head++
	return p
}
