package history

import (
	"sync"
	"time"
)

// History records requests of concurrent clients. It is safe for concurrent use.
type History struct {
	start time.Time

	mu      sync.Mutex
	ops     []Op
	counted Counts
	wrong   []string
	failed  []Op // since the last call of TakeFailed
}

// Counts says how many requests ended in which way.
type Counts struct {
	Acknowledged int // writes
	Unknown      int // writes
	Refused      int // writes
	Reads        int // that returned an object or that there is none
}

// Add returns the sum of two counts.
func (c Counts) Add(d Counts) Counts {
	return Counts{c.Acknowledged + d.Acknowledged, c.Unknown + d.Unknown, c.Refused + d.Refused, c.Reads + d.Reads}
}

// Requests is how many requests ended.
func (c Counts) Requests() int { return c.Acknowledged + c.Unknown + c.Refused + c.Reads }

// New returns an empty history.
func New() *History { return &History{start: time.Now()} }

// Now is the time since the history began, in nanoseconds. It doesn't depend on the system's clock.
func (h *History) Now() int64 { return int64(time.Since(h.start)) }

// Add records a request that has ended.
func (h *History) Add(op Op) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ops = append(h.ops, op)
	switch {
	case !op.Kind.Writes():
		if op.Outcome != Unknown {
			h.counted.Reads++
		}
	case op.Outcome == Done:
		h.counted.Acknowledged++
	case op.Outcome == Refused:
		h.counted.Refused++
	default:
		h.counted.Unknown++
	}
}

// Counts returns how many requests have ended since the history began.
func (h *History) Counts() Counts {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.counted
}

// Take returns the requests that were recorded since the last call.
func (h *History) Take() []Op {
	h.mu.Lock()
	defer h.mu.Unlock()
	ops := h.ops
	h.ops = nil
	return ops
}

// Fail records a request that failed although its client did not give up.
func (h *History) Fail(op Op) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.failed = append(h.failed, op)
}

// TakeFailed returns the requests that have failed since the last call, of those that were sent since a time.
func (h *History) TakeFailed(since int64) (failed []Op) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, op := range h.failed {
		if op.Call >= since {
			failed = append(failed, op)
		}
	}
	h.failed = nil
	return failed
}

// Wrong records a reply that is wrong by itself.
func (h *History) Wrong(text string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.wrong = append(h.wrong, text)
}

// TakeWrong returns the wrong replies that were recorded since the last call.
func (h *History) TakeWrong() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	wrong := h.wrong
	h.wrong = nil
	return wrong
}
