package app

import (
	"context"
	"sync"

	"belfry/pkg/errs"
)

// current is what a process serves now.
type current struct {
	mu         sync.RWMutex
	generation *generation
	retiring   sync.WaitGroup // generations that were replaced, and are still in use
}

// newCurrent returns the first generation as what is served.
func newCurrent(first *generation) *current { return &current{generation: first} }

// now returns what is served. Whoever needs what ends with it uses use; everything else stays usable after a reload.
func (c *current) now() *generation {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.generation
}

// use returns what is served, which stays complete until done is called.
func (c *current) use() (g *generation, done func()) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	c.generation.inUse.Add(1)
	return c.generation, c.generation.inUse.Done
}

// replace has another generation served. Nothing begins with the one before any more.
func (c *current) replace(next *generation) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.generation = next
}

// retire calls end once nothing uses a generation that was replaced.
func (c *current) retire(before *generation, end func(context.Context)) {
	c.retiring.Go(func() {
		before.inUse.Wait()
		end(context.Background())
	})
}

// retired waits until all generations that were replaced are retired, or until ctx ends.
func (c *current) retired(ctx context.Context) error {
	done := make(chan struct{})
	go func() {
		c.retiring.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return errs.Wrap(ctx.Err(), errs.Canceled, "a configuration that was replaced is still in use")
	}
}

// part has a stop wait for what was replaced, before what that needs is closed.
func (c *current) part() servedPart {
	return servedPart{
		Name: "what was served before a reload", Start: func(context.Context, *generation) error { return nil }, Stop: c.retired,
	}
}
