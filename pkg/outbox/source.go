package outbox

import (
	"context"
	"slices"
	"strconv"
	"time"

	"belfry/internal/backoff"
	"belfry/pkg/store/driver"
)

const (
	pageEvents      = 500   // events per page
	maxUncleared    = 5_000 // limit of published events that are not cleared yet
	clearTimeout    = 30 * time.Second
	clearEvery      = 25 * time.Millisecond // events published in the meantime share the sync
	clearRestFactor = 3                     // interval of clearing as a multiple of its duration,
	clearRestMax    = time.Second           // its maximum,
	clearNowFrom    = 1_000                 // and the number of events that are cleared without it
	readAgainMin    = 100 * time.Millisecond
	readAgainMax    = 10 * time.Second
)

// source is a store with its events in memory. All fields below wake are guarded by
// the relay's mutex.
//
// Events reach the bus by two paths: from the queue, and from a pass over the records.
// The following rules keep the order of an object's events.
//
// While a source is marked incomplete, no event is queued. The mark is removed just
// before a pass starts: by then all events that were not queued have been written, so the
// pass finds them. The queue is blocked until the pass is done. An event that was both
// found and queued is published twice, in the same order, and deduplicated by its ID.
type source struct {
	relay *Relay
	name  string
	store driver.Store
	wake  chan struct{} // signals that run may have work

	queue    queue
	accepted uint64 // number of events that were queued
	sent     uint64 // number of these that were published

	incomplete bool // events were not queued; a pass must find them
	pass       *pass
	started    uint64 // passes over all pending events
	done       uint64

	clear    []driver.Pending // published, not cleared yet
	clearing int              // being cleared now

	refused map[string]uint64 // events that the bus refuses for good, by id: the pass that found each last
	passes  uint64            // that have begun
}

// maxRefused is how many refused events of a store are remembered.
const maxRefused = 10_000

// refuse remembers an event that the bus has refused for good.
func (s *source) refuse(id string) {
	if s.refused == nil {
		s.refused = map[string]uint64{}
	}
	if _, known := s.refused[id]; known || len(s.refused) < maxRefused {
		s.refused[id] = s.passes
	}
}

// forgetRefused forgets the events that the last two passes have not found in a record. One pass does not suffice: a
// sweep skips recent records.
func (s *source) forgetRefused() {
	for id, found := range s.refused {
		if found+1 < s.passes {
			delete(s.refused, id)
		}
	}
}

// pass is an iteration over the pending events of a store.
type pass struct {
	abandoned bool   // a sweep: only events that other processes seem to have abandoned
	after     []byte // position of the next page
	ready     bool   // page has been read
	last      bool   // it is the last one
	page      []driver.Pending
}

// item is an event in a batch.
type item struct {
	src    *source
	queued bool // from the queue, not from a record
	driver.Pending
}

// target is the state of a source that Flush waits for.
type target struct {
	src            *source
	accepted, done uint64
}

func (s *source) target() target {
	t := target{src: s, accepted: s.accepted, done: s.started}
	if s.incomplete {
		t.done++
	}
	return t
}

func reached(targets []target) bool {
	return !slices.ContainsFunc(targets, func(t target) bool {
		return t.src.sent < t.accepted || t.src.done < t.done
	})
}

func (s *source) notify() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// startPass starts a pass when one is due and none is in progress.
func (s *source) startPass() {
	if s.incomplete && s.pass == nil && s.queue.len() == 0 {
		s.incomplete = false
		s.started++
		s.passes++
		s.pass = &pass{}
		s.notify()
	}
}

// startSweep starts a sweep for events that other processes abandoned.
func (s *source) startSweep() {
	if s.pass == nil && !s.incomplete {
		s.passes++
		s.pass = &pass{abandoned: true}
		s.notify()
	}
}

// take adds the events that may be published now to the batch.
func (s *source) take(b *batch) {
	if len(s.clear)+s.clearing >= maxUncleared {
		return
	}
	if p := s.pass; p != nil && p.ready {
		for len(p.page) > 0 && b.fits(p.page[0]) {
			b.add(item{src: s, Pending: p.page[0]})
			p.page = p.page[1:]
		}
	}
	if s.pass != nil && !s.pass.abandoned {
		return
	}
	for s.queue.len() > 0 && b.fits(s.queue.first()) {
		b.add(item{src: s, queued: true, Pending: s.queue.pop()})
	}
}

// nextPage continues the pass when its page has been published, and reports whether
// that was the last page.
func (s *source) nextPage() bool {
	p := s.pass
	if p == nil || !p.ready || len(p.page) > 0 {
		return false
	}
	if !p.last {
		p.ready = false
		s.notify()
		return false
	}
	s.pass = nil
	s.forgetRefused()
	if !p.abandoned {
		s.done++
	}
	return true
}

// run makes all calls to the store, so that a slow store does not block others.
func (s *source) run() {
	retry := backoff.New(readAgainMin, readAgainMax)
	for {
		published, walk, end := s.work()
		switch {
		case len(published) > 0:
			s.rest(s.clearNow(published))
		case walk != nil:
			if s.read(walk) {
				retry.Reset()
				continue
			}
			_ = retry.Wait(s.relay.ctx)
		case end:
			return
		default:
			<-s.wake
		}
	}
}

// work returns the next task of run: clear events, read a page, or end.
func (s *source) work() ([]driver.Pending, *pass, bool) {
	s.relay.mu.Lock()
	defer s.relay.mu.Unlock()
	if len(s.clear) > 0 {
		published := s.clear
		s.clear, s.clearing = nil, len(published)
		return published, nil, false
	}
	if s.relay.closing {
		return nil, nil, true
	}
	if s.pass != nil && !s.pass.ready && s.relay.ctx.Err() == nil {
		return nil, s.pass, false
	}
	return nil, nil, false
}

// clearNow clears published events from their records and returns how long the store
// took for that.
func (s *source) clearNow(published []driver.Pending) (took time.Duration) {
	ctx, cancel := context.WithTimeout(s.relay.clearCtx, clearTimeout)
	defer cancel()
	err := s.relay.opts.Publisher.Sync(ctx)
	if err == nil {
		began := time.Now()
		err = s.store.Clear(ctx, published)
		took = time.Since(began)
	}
	s.relay.mu.Lock()
	s.clearing = 0
	s.relay.mu.Unlock()
	if err != nil {
		s.relay.counters.clearFailures.Add(1)
		s.relay.log.Warn("outbox: published events can't be cleared from their records; they will be published again "+
			"and deduplicated",
			"store", s.name, "events", len(published), "error", err)
	}
	s.relay.notify()
	return took
}

// rest waits before the next clearing, the longer the slower the store is, so that
// more events are cleared together and the store has time for other requests.
func (s *source) rest(took time.Duration) {
	timer := time.NewTimer(min(max(clearEvery, clearRestFactor*took), clearRestMax))
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
			return
		case <-s.relay.ctx.Done():
			return
		case <-s.wake:
			if s.shouldStopResting() {
				return
			}
		}
	}
}

// shouldStopResting reports whether there is work that must not wait.
func (s *source) shouldStopResting() bool {
	s.relay.mu.Lock()
	defer s.relay.mu.Unlock()
	return len(s.clear) >= clearNowFrom || s.pass != nil && !s.pass.ready
}

// read reads the next page of a pass.
func (s *source) read(p *pass) bool {
	events, next, err := s.store.Pending(s.relay.ctx, p.after, pageEvents)
	if err != nil {
		if s.relay.ctx.Err() == nil {
			s.relay.log.Warn("outbox: a store can't be searched for pending events; retrying", "store", s.name,
				"error", err)
		}
		return false
	}
	if p.abandoned {
		now := time.Now()
		events = slices.DeleteFunc(events,
			func(e driver.Pending) bool { return recentlyCreated(e.ID, now, s.relay.opts.SweepAge) })
	}
	s.relay.mu.Lock()
	p.page, p.after, p.last, p.ready = events, next, next == nil, true
	s.relay.mu.Unlock()
	s.relay.notify()
	return true
}

// recentlyCreated reports whether an ID is a UUIDv7, which begins with its time in
// milliseconds, that was created within age of now. It returns false for any other ID,
// and for one from the distant future: after a clock was set back, such an event would
// never be published.
func recentlyCreated(id string, now time.Time, age time.Duration) bool {
	if len(id) != 36 || id[14] != '7' {
		return false
	}
	ms, err := strconv.ParseInt(id[:8]+id[9:13], 16, 64)
	return err == nil && now.Sub(time.UnixMilli(ms)).Abs() < age
}
