package natsapi

import (
	"context"
	"sync"
)

// gate bounds what a store has to do: so many requests at once, so many that
// wait, and so much memory that all of them hold.
type admission struct {
	slots chan struct{} // one for each request at work

	mu       sync.Mutex
	count    int // of requests inside, at work or waiting
	bytes    int
	maxCount int
	maxBytes int // the most of bytes, unless there is one request alone
}

func newAdmission(working, waiting, bytes int) *admission {
	return &admission{slots: make(chan struct{}, working), maxCount: working + waiting, maxBytes: bytes}
}

// admit lets a request in, or reports that there are too many.
func (g *admission) admit(size int) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.count >= g.maxCount || g.count > 0 && g.bytes+size > g.maxBytes {
		return false
	}
	g.count++
	g.bytes += size
	return true
}

// leave is the end of a request that was admitted.
func (g *admission) release(size int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.count--
	g.bytes -= size
}

// begin waits for a slot; end gives it back.
func (g *admission) acquire(ctx context.Context) (end func(), err error) {
	select {
	case g.slots <- struct{}{}:
		return func() { <-g.slots }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
