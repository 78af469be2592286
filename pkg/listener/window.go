package listener

import (
	"context"
	"sync/atomic"
	"time"
)

// prefetchTime is how much work is fetched before a worker is free for it. More
// would not be faster, and would be missing in other processes.
const prefetchTime = 100 * time.Millisecond

// prefetchWindow bounds the events that are fetched and not finished: one slot
// for each event that can be handled at once, and further slots for as many as
// are handled within prefetchTime. It starts without the further slots, so that
// an event that crashes the process at once has few others beside it.
type prefetchWindow struct {
	handled  int // events handled at once at most
	workers  int // calls of the handler at once
	prefetch int // further slots at most

	used    atomic.Int64 // slots of events that are fetched or requested
	average atomic.Int64 // nanoseconds of a handler's call for one event; 0: unknown
	calls   atomic.Int64
	freed   chan struct{}
}

func newPrefetchWindow(handled, workers, prefetch int) *prefetchWindow {
	return &prefetchWindow{handled: handled, workers: workers, prefetch: prefetch, freed: make(chan struct{}, 1)}
}

// startCall returns the time, or the zero time when the call is not measured: of
// the calls of a fast handler only some are.
func (w *prefetchWindow) startCall() time.Time {
	const fast, oneOf = int64(100 * time.Microsecond), 8
	if w.average.Load() < fast && w.calls.Add(1)%oneOf != 1 {
		return time.Time{}
	}
	return time.Now()
}

// endCall records the duration of a call that handled some events.
func (w *prefetchWindow) endCall(began time.Time, events int) {
	if began.IsZero() {
		return
	}
	const weight = 4
	each := max(int64(time.Since(began))/int64(events), 1)
	if before := w.average.Load(); before > 0 {
		each = max(before+(each-before)/weight, 1)
	}
	w.average.Store(each) // of concurrent calls one may be lost
}

// requestShare is the share of the events handled at once for which a request is made: one for each event that ends
// would be a message for each, and one more when it expires.
const requestShare = 16

// free is how many slots are free, and whether they are enough for a request.
func (w *prefetchWindow) free() (n int, enough bool) {
	further := 0
	if average := w.average.Load(); average > 0 {
		further = int(min(int64(w.prefetch), int64(w.workers)*int64(prefetchTime)/average))
	}
	n = w.handled + further - int(w.used.Load())
	return n, n >= max(1, further/2, w.handled/requestShare)
}

// acquire waits until enough slots are free, takes them all, and returns how many
// they are.
func (w *prefetchWindow) acquire(ctx context.Context) int {
	for {
		if n, enough := w.free(); enough {
			w.used.Add(int64(n))
			return n
		}
		select {
		case <-w.freed:
		case <-ctx.Done():
			return 0
		}
	}
}

func (w *prefetchWindow) release(n int) {
	w.used.Add(-int64(n))
	if _, enough := w.free(); enough {
		select {
		case w.freed <- struct{}{}:
		default:
		}
	}
}
