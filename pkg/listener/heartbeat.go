package listener

import (
	"sync"
	"time"
)

// inFlight are the deliveries that are not acknowledged yet. It sends InProgress
// for each of them in intervals, so that the bus does not redeliver them.
type inFlight struct {
	interval time.Duration
	done     chan struct{}

	mu   sync.Mutex
	ring delivery // sentinel of a ring of all deliveries; only its links are used
}

// links are a delivery's neighbors in the ring.
type links struct{ prev, next *delivery }

func newInFlight(interval time.Duration) *inFlight {
	f := &inFlight{interval: interval, done: make(chan struct{})}
	f.ring.prev, f.ring.next = &f.ring, &f.ring
	return f
}

func (f *inFlight) add(d *delivery) {
	f.mu.Lock()
	defer f.mu.Unlock()
	d.prev, d.next = f.ring.prev, &f.ring
	d.prev.next, d.next.prev = d, d
}

// remove must come before the reply to the bus: an InProgress after a Nak would
// undo its delay.
func (f *inFlight) remove(d *delivery) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if d.next != nil {
		d.prev.next, d.next.prev = d.next, d.prev
		d.prev, d.next = nil, nil
	}
}

// run sends heartbeats until stop is called.
func (f *inFlight) run() {
	ticker := time.NewTicker(f.interval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			f.heartbeat()
		case <-f.done:
			return
		}
	}
}

func (f *inFlight) stop() { close(f.done) }

func (f *inFlight) heartbeat() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for d := f.ring.next; d != &f.ring; d = d.next {
		_ = d.msg.InProgress() // fails without a connection, which reconnects
	}
}
