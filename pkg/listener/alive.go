package listener

import (
	"sync"
	"time"
)

// held are the events that the bus has handed out and heard nothing of. It is
// told from time to time that they are here.
type held struct {
	every time.Duration
	done  chan struct{}

	mu  sync.Mutex
	all delivery // the ends of a ring of all, of which only links are used
}

// links are an event's neighbours in the ring.
type links struct{ before, after *delivery }

func newHeld(every time.Duration) *held {
	h := &held{every: every, done: make(chan struct{})}
	h.all.before, h.all.after = &h.all, &h.all
	return h
}

// add keeps an event alive.
func (h *held) add(d *delivery) {
	h.mu.Lock()
	defer h.mu.Unlock()
	d.before, d.after = h.all.before, &h.all
	d.before.after, d.after.before = d, d
}

// remove lets go of an event before the bus is told what became of it: a sign of
// life that came later would undo a delay.
func (h *held) remove(d *delivery) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if d.after != nil {
		d.before.after, d.after.before = d.after, d.before
		d.before, d.after = nil, nil
	}
}

// keep gives the signs of life until end is called.
func (h *held) keep() {
	ticker := time.NewTicker(h.every)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			h.sign()
		case <-h.done:
			return
		}
	}
}

func (h *held) end() { close(h.done) }

func (h *held) sign() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for d := h.all.after; d != &h.all; d = d.after {
		// What goes wrong is the connection, which comes back.
		_ = d.msg.InProgress()
	}
}
