package natsapi

import (
	"context"
	"sync"
)

// gate bounds what a store has to do: so many requests at once, so many that
// wait, and so much memory that all of them hold.
type gate struct {
	slots chan struct{} // one for each request at work

	mu    sync.Mutex
	count int // of requests inside, at work or waiting
	bytes int
	most  int
	heavy int // the most of bytes, unless there is one request alone
}

func newGate(working, waiting, bytes int) *gate {
	return &gate{slots: make(chan struct{}, working), most: working + waiting, heavy: bytes}
}

// admit lets a request in, or reports that there are too many.
func (g *gate) admit(size int) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.count >= g.most || g.count > 0 && g.bytes+size > g.heavy {
		return false
	}
	g.count++
	g.bytes += size
	return true
}

// leave is the end of a request that was admitted.
func (g *gate) leave(size int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.count--
	g.bytes -= size
}

// begin waits for a slot; end gives it back.
func (g *gate) begin(ctx context.Context) (end func(), err error) {
	select {
	case g.slots <- struct{}{}:
		return func() { <-g.slots }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
