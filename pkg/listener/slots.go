package listener

import (
	"context"
	"sync/atomic"
	"time"
)

// ahead is how much work is fetched before there is a hand for it. More would
// not be quicker, and be missing in other processes.
const ahead = 100 * time.Millisecond

// slots are the places of events that are here: one for each that can be
// handled at once, and, beyond these, for as many as are handled in a moment.
// A listener begins with none of the latter: an event that ends its process at
// once takes along few.
type slots struct {
	hands   int // events that are handled at once at most
	workers int // calls of the handler at once
	most    int // events fetched ahead

	here  atomic.Int64 // events that are here, or asked for
	takes atomic.Int64 // how long a call of the handler does, in the middle, in nanoseconds; 0: unknown
	calls atomic.Int64
	freed chan struct{}
}

func newSlots(hands, workers, prefetch int) *slots {
	return &slots{hands: hands, workers: workers, most: prefetch, freed: make(chan struct{}, 1)}
}

// clock begins to measure a call. Of a quick handler's one in some is enough:
// for the others it returns the zero time.
func (s *slots) clock() time.Time {
	const quick, oneOf = int64(100 * time.Microsecond), 8
	if s.takes.Load() < quick && s.calls.Add(1)%oneOf != 1 {
		return time.Time{}
	}
	return time.Now()
}

// took notes how long a call took for so many events.
func (s *slots) took(began time.Time, events int) {
	if began.IsZero() {
		return
	}
	const weight = 4
	each := max(int64(time.Since(began))/int64(events), 1)
	if before := s.takes.Load(); before > 0 {
		each = max(before+(each-before)/weight, 1)
	}
	s.takes.Store(each) // of calls side by side one may be lost
}

// free is how many places are free, and whether that is enough for a request to
// be worth its while.
func (s *slots) free() (n int, enough bool) {
	extra := 0
	if takes := s.takes.Load(); takes > 0 {
		extra = int(min(int64(s.most), int64(s.workers)*int64(ahead)/takes))
	}
	n = s.hands + extra - int(s.here.Load())
	return n, n >= max(1, extra/2)
}

// take waits until enough places are free, takes them all, and returns how many.
func (s *slots) take(ctx context.Context) int {
	for {
		if n, enough := s.free(); enough {
			s.here.Add(int64(n))
			return n
		}
		select {
		case <-s.freed:
		case <-ctx.Done():
			return 0
		}
	}
}

// give gives places back.
func (s *slots) give(n int) {
	s.here.Add(-int64(n))
	if _, enough := s.free(); enough {
		select {
		case s.freed <- struct{}{}:
		default:
		}
	}
}
