package objects

import (
	"sync"
	"time"

	"belfry/internal/ratelimit"
	"belfry/pkg/errs"
)

// Limits of concurrent streams of creations. Each stream has at most maxLine, bytesInFlight and its buffers in memory.
const (
	maxStreams       = 32
	maxClientStreams = 8 // of one network address
)

// streams counts the streams of creations in flight. It is safe for concurrent use.
type streams struct {
	mu       sync.Mutex
	all      int
	byClient map[string]int
}

func newStreams() *streams { return &streams{byClient: map[string]int{}} }

// enter counts a stream of a network address until leave is called. The error is Limited or Unavailable if there are
// too many.
func (s *streams) enter(address string) (leave func(), err error) {
	client := ratelimit.Key(address)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.byClient[client] >= maxClientStreams:
		return nil, &errs.Error{Kind: errs.Limited, RetryAfter: time.Second,
			Message: "you have too many streams of objects at once: wait until one has ended"}
	case s.all >= maxStreams:
		return nil, &errs.Error{Kind: errs.Unavailable, RetryAfter: time.Second,
			Message: "there are too many streams of objects at once: try again later"}
	}
	s.all++
	s.byClient[client]++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.all--
		if s.byClient[client]--; s.byClient[client] == 0 {
			delete(s.byClient, client)
		}
	}, nil
}
