package outbox

import (
	"context"
	"slices"
	"strconv"
	"time"

	"belfry/pkg/store/driver"
)

const (
	pageEvents   = 500   // asked of a store at once
	uncleared    = 5_000 // a store that clears more slowly than this waits
	clearTimeout = 30 * time.Second
	clearEvery   = 25 * time.Millisecond // what is published meanwhile shares the sync
	clearRest    = 3                     // a store rests from clearing for so many times as long as that took,
	clearMost    = time.Second           // at most so long,
	clearMany    = 1_000                 // and not when there are so many to clear
	readAgainMin = 100 * time.Millisecond
	readAgainMax = 10 * time.Second
)

// source is a store and its events on their way. All fields below store are
// guarded by the relay's mutex.
//
// The order of an object's events is kept across the two ways they take, from
// memory and from records, like this. While a source is marked nothing is
// queued. The mark is taken away just before a pass over the records begins,
// so everything left out before was written before and is found. While the
// pass lasts the queue is held back. What is both found and queued is
// published twice, in the same order, and the bus knows it by its id.
type source struct {
	relay *Relay
	name  string
	store driver.Store
	wake  chan struct{} // hears that the keeper may have work

	queue    queue
	accepted uint64 // events ever queued
	sent     uint64 // of those, published

	marked  bool // events were left out; a pass must find them
	pass    *pass
	started uint64 // passes that look for everything
	done    uint64

	clear    []driver.Pending // published, still in their records
	clearing int              // being cleared now
}

// pass is one walk over the events that wait in a store's records.
type pass struct {
	left  bool   // only what other processes seem to have left
	after []byte // where the next page begins
	ready bool   // page has been read
	last  bool   // it is the last one
	page  []driver.Pending
}

// item is an event in a batch.
type item struct {
	src    *source
	queued bool // from the queue, not from a record
	driver.Pending
}

// target is what Flush waits for of one source.
type target struct {
	src            *source
	accepted, done uint64
}

func (s *source) target() target {
	t := target{src: s, accepted: s.accepted, done: s.started}
	if s.marked {
		t.done++
	}
	return t
}

func reached(targets []target) bool {
	return !slices.ContainsFunc(targets, func(t target) bool {
		return t.src.sent < t.accepted || t.src.done < t.done
	})
}

func (s *source) nudge() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// begin starts a pass when one is due and none is under way.
func (s *source) begin() {
	if s.marked && s.pass == nil && s.queue.len() == 0 {
		s.marked = false
		s.started++
		s.pass = &pass{}
		s.nudge()
	}
}

// beginLeft starts a search for what other processes left.
func (s *source) beginLeft() {
	if s.pass == nil && !s.marked {
		s.pass = &pass{left: true}
		s.nudge()
	}
}

// take appends to the batch what may be published now.
func (s *source) take(b *batch) {
	if len(s.clear)+s.clearing >= uncleared {
		return
	}
	if p := s.pass; p != nil && p.ready {
		for len(p.page) > 0 && b.fits(p.page[0]) {
			b.add(item{src: s, Pending: p.page[0]})
			p.page = p.page[1:]
		}
	}
	if s.pass != nil && !s.pass.left {
		return
	}
	for s.queue.len() > 0 && b.fits(s.queue.first()) {
		b.add(item{src: s, queued: true, Pending: s.queue.pop()})
	}
}

// turnPage goes on with the pass when the whole page has been published, and
// reports whether that was the last one.
func (s *source) turnPage() bool {
	p := s.pass
	if p == nil || !p.ready || len(p.page) > 0 {
		return false
	}
	if !p.last {
		p.ready = false
		s.nudge()
		return false
	}
	s.pass = nil
	if !p.left {
		s.done++
	}
	return true
}

// keep does what waits for the store, so that a slow one holds up no other.
func (s *source) keep() {
	wait := readAgainMin
	for {
		published, walk, end := s.work()
		switch {
		case len(published) > 0:
			s.rest(s.clearNow(published))
		case walk != nil:
			if s.read(walk) {
				wait = readAgainMin
				continue
			}
			s.pause(wait)
			wait = min(2*wait, readAgainMax)
		case end:
			return
		default:
			<-s.wake
		}
	}
}

// work is what the keeper does next: clear events, read a page, or end.
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
	if s.pass != nil && !s.pass.ready && s.relay.life.Err() == nil {
		return nil, s.pass, false
	}
	return nil, nil, false
}

// clearNow takes events out of their records and returns how long the store
// took for it.
func (s *source) clearNow(published []driver.Pending) (took time.Duration) {
	ctx, cancel := context.WithTimeout(s.relay.tidy, clearTimeout)
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
		s.relay.counters.unclear.Add(1)
		s.relay.log.Warn("published events can't be cleared from their records; they will be published again",
			"store", s.name, "events", len(published), "error", err)
	}
	s.relay.nudge()
	return took
}

// rest leaves the store to its writes and reads, the longer the more clearing
// cost it, while events gather that are cleared together.
func (s *source) rest(took time.Duration) {
	timer := time.NewTimer(min(max(clearEvery, clearRest*took), clearMost))
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
			return
		case <-s.relay.life.Done():
			return
		case <-s.wake:
			if s.wanted() {
				return
			}
		}
	}
}

// wanted reports whether there is something that is not to wait for a rest.
func (s *source) wanted() bool {
	s.relay.mu.Lock()
	defer s.relay.mu.Unlock()
	return len(s.clear) >= clearMany || s.pass != nil && !s.pass.ready
}

// read reads the next page of a pass.
func (s *source) read(p *pass) bool {
	events, next, err := s.store.Pending(s.relay.life, p.after, pageEvents)
	if err != nil {
		if s.relay.life.Err() == nil {
			s.relay.log.Warn("a store can't be searched for events; trying again", "store", s.name, "error", err)
		}
		return false
	}
	if p.left {
		now := time.Now()
		events = slices.DeleteFunc(events, func(e driver.Pending) bool { return young(e.ID, now, s.relay.opts.SweepAge) })
	}
	s.relay.mu.Lock()
	p.page, p.after, p.last, p.ready = events, next, next == nil, true
	s.relay.mu.Unlock()
	s.relay.nudge()
	return true
}

func (s *source) pause(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.relay.life.Done():
	}
}

// young reports whether an id is a UUIDv7, which begins with its time in
// milliseconds, made within age of now. Of any other id it says no, and of one
// from a future further off too: a clock that was set back would keep it there.
func young(id string, now time.Time, age time.Duration) bool {
	if len(id) != 36 || id[14] != '7' {
		return false
	}
	ms, err := strconv.ParseInt(id[:8]+id[9:13], 16, 64)
	return err == nil && now.Sub(time.UnixMilli(ms)).Abs() < age
}
