package natsapi

import (
	"context"
	"sync"
)

// admission limits the load of a store: requests in flight, requests that wait, and
// the memory of all of them.
type admission struct {
	slots chan struct{} // one for each request in flight

	mu       sync.Mutex
	count    int // of admitted requests, in flight or waiting
	bytes    int
	maxCount int
	maxBytes int // limit of bytes; a single request may exceed it
}

func newAdmission(inFlight, queued, bytes int) *admission {
	return &admission{slots: make(chan struct{}, inFlight), maxCount: inFlight + queued, maxBytes: bytes}
}

// admit admits a request, or returns false when a limit is reached.
func (a *admission) admit(size int) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.count >= a.maxCount || a.count > 0 && a.bytes+size > a.maxBytes {
		return false
	}
	a.count++
	a.bytes += size
	return true
}

// release ends a request that was admitted.
func (a *admission) release(size int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.count--
	a.bytes -= size
}

// acquire waits for a slot; release frees it.
func (a *admission) acquire(ctx context.Context) (release func(), err error) {
	select {
	case a.slots <- struct{}{}:
		return func() { <-a.slots }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
