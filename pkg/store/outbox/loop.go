package outbox

import (
	"errors"
	"math/rand/v2"
	"strings"
	"time"

	"belfry/pkg/bus"
	"belfry/pkg/event"
	"belfry/pkg/store/driver"
)

const (
	batchEvents  = 500
	batchBytes   = 2 << 20
	againMin     = 50 * time.Millisecond
	againMax     = 2 * time.Second
	refusedKnown = 1_000

	// A batch costs the bus and the scheduler about as much as a dozen events.
	// Where events come in by the dozen, a little patience makes batches of
	// several dozen; a lone event, or a few, never wait for others.
	gatherFrom = 24
	gatherFor  = 3 * time.Millisecond
)

// batch is what is published at once.
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

// loop is the state of the one goroutine that publishes.
type loop struct {
	*Relay
	batch    batch
	outgoing []bus.Event
	refused  map[string]bool // ids that were logged as refused
}

// run publishes what is in hand as soon as the batch before is done: the more
// comes in meanwhile, the larger the next one.
func (r *Relay) run() {
	l := &loop{Relay: r, refused: map[string]bool{}}
	tick := time.NewTicker(r.opts.SweepEvery)
	defer tick.Stop()
	for {
		for l.gather() {
			many := len(l.batch.items) >= gatherFrom
			if !l.publish() {
				return
			}
			if many {
				r.rest(gatherFor)
			}
		}
		select {
		case <-r.kick:
		case <-tick.C:
			r.searchLeft()
		case <-r.life.Done():
			return
		}
	}
}

// rest lets more come in, unless the relay ends.
func (r *Relay) rest(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-r.life.Done():
	}
}

func (r *Relay) searchLeft() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, src := range r.sources {
		src.beginLeft()
	}
}

// gather fills the batch from all sources in turn, and reports whether there
// is anything in it.
func (l *loop) gather() bool {
	l.batch.reset()
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range l.sources {
		src := l.sources[(l.turn+i)%len(l.sources)]
		src.begin()
		src.take(&l.batch)
	}
	l.turn++
	if len(l.batch.items) > 0 {
		return true
	}
	l.settle()
	return false
}

// settle lets passes go on whose page is done, and tells who waits.
func (l *loop) settle() {
	for _, src := range l.sources {
		if src.turnPage() {
			l.nudge() // what was held back may go now
		}
	}
	l.announce()
}

// announce wakes up who waits for progress.
func (l *loop) announce() {
	close(l.progress)
	l.progress = make(chan struct{})
}

// publish publishes the batch, however long that takes. It reports false when
// the relay ends first.
func (l *loop) publish() bool {
	l.outgoing = l.outgoing[:0]
	for i := range l.batch.items {
		e := &l.batch.items[i].Event
		l.outgoing = append(l.outgoing, bus.Event{ID: e.ID, Subject: e.Subject, Payload: e.Payload})
	}
	start := time.Now()
	refused, ok := l.publishAgain()
	if !ok {
		return false
	}
	took := time.Since(start)
	l.finish(refused)
	if l.opts.Observe != nil {
		l.opts.Observe(len(l.batch.items)-len(refused), took)
	}
	clear(l.outgoing)
	return true
}

// publishAgain tries until the bus has taken the batch, and returns which of
// its events the bus refused for good.
func (l *loop) publishAgain() (map[string]string, bool) {
	for wait := againMin; ; wait = min(2*wait, againMax) {
		began := time.Now()
		err := l.opts.Publisher.Publish(l.life, l.outgoing)
		var refused *bus.RejectedError
		switch {
		case err == nil || errors.As(err, &refused):
			if l.counters.away.Swap(false) {
				l.log.Info("events are published again")
			}
			return reasons(refused), true
		case l.life.Err() != nil:
			return nil, false
		}
		l.fail(began, err)
		timer := time.NewTimer(wait/2 + rand.N(wait))
		select {
		case <-timer.C:
		case <-l.hurry:
			wait = againMin
		case <-l.life.Done():
			timer.Stop()
			return nil, false
		}
	}
}

// fail notes that an attempt failed, and tells who waits.
func (l *loop) fail(began time.Time, err error) {
	l.counters.failures.Add(1)
	if !l.counters.away.Swap(true) {
		l.log.Warn("events can't be published; they wait in their records", "error", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failed = began
	l.announce()
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

// finish does what follows once the batch is in the bus.
func (l *loop) finish(refused map[string]string) {
	for i := range l.batch.items {
		it := &l.batch.items[i]
		if reason, is := refused[it.ID]; is {
			l.refuse(it, reason)
			continue
		}
		l.opts.Publisher.Live(name(it.Subject), it.Payload)
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
		if _, is := refused[it.ID]; !is {
			it.Payload = nil // clearing needs it no more
			it.src.clear = append(it.src.clear, it.Pending)
			it.src.nudge()
		}
	}
	l.settle()
}

// refuse logs an event that the bus will not take, once: each search finds it
// in its record again.
func (l *loop) refuse(it *item, reason string) {
	l.counters.refused.Add(1)
	if l.refused[it.ID] {
		return
	}
	if len(l.refused) >= refusedKnown {
		clear(l.refused)
	}
	l.refused[it.ID] = true
	l.log.Error("the bus refuses an event; it stays in its record",
		"event", it.ID, "store", it.src.name, "uuid", it.UUID, "reason", reason)
}

// name takes an event's name out of the subject on which it is kept:
// events.<partition>.<Event>.<Store>.<uuid>, the name alone with dots in it.
func name(subject string) event.Name {
	s := strings.TrimPrefix(subject, event.LogPrefix)
	_, s, _ = strings.Cut(s, ".")
	for range 2 {
		s = s[:max(strings.LastIndexByte(s, '.'), 0)]
	}
	return event.Name(s)
}
