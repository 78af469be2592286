package serving

import (
	"context"
	"sync"
	"sync/atomic"

	"belfry/pkg/errs"
)

// Current has the generation that a process serves now.
type Current struct {
	mu         sync.RWMutex
	generation *Generation
	retiring   sync.WaitGroup  // generations that were replaced, and are still in use
	settled    <-chan struct{} // closed once the last of them is settled; nil: none was replaced
	retired    <-chan struct{} // closed once the last one is retired; nil: none was replaced
}

// NewCurrent makes the first generation the current one.
func NewCurrent(first *Generation) *Current { return &Current{generation: first} }

// Now returns the current generation. Callers of parts that end with the generation call Use instead; all other parts
// stay usable after a reload.
func (c *Current) Now() *Generation {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.generation
}

// Use returns the current generation, which stays complete until done is called.
func (c *Current) Use() (g *Generation, done func()) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	g = c.generation
	g.inUse.Add(1)
	g.writing.Add(1)
	return g, func() {
		g.writing.Done()
		g.inUse.Done()
	}
}

// Read is Use for work that changes no object, and can last for hours: a later configuration fills arrays and builds
// indexes beside it.
func (c *Current) Read() (g *Generation, done func()) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	c.generation.inUse.Add(1)
	return c.generation, c.generation.inUse.Done
}

// Using is the use of a generation by a request: that of Use until Reads is called, and then that of Read.
type Using struct {
	Generation *Generation
	reading    atomic.Bool
}

// UseThenRead begins a use, which lasts until Done is called.
func (c *Current) UseThenRead(u *Using) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	u.Generation = c.generation
	u.Generation.inUse.Add(1)
	u.Generation.writing.Add(1)
}

// Reads says that the use changes no object from now on. It may be called several times.
func (u *Using) Reads() {
	if !u.reading.Swap(true) {
		u.Generation.writing.Done()
	}
}

// Done ends the use.
func (u *Using) Done() {
	u.Reads()
	u.Generation.inUse.Done()
}

// Replace makes another generation the current one. No new work begins with the previous one.
func (c *Current) Replace(next *Generation) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.generation = next
}

// Retire calls settle once nothing writes with a replaced generation or an earlier one, and then end once nothing uses
// any of them. Their work may rely on that.
func (c *Current) Retire(before *Generation, settle, end func(context.Context)) {
	c.mu.Lock()
	earlierSettled, earlierRetired := c.settled, c.retired
	settled, retired := make(chan struct{}), make(chan struct{})
	c.settled, c.retired = settled, retired
	c.mu.Unlock()
	c.retiring.Go(func() {
		defer close(retired)
		await(earlierSettled)
		before.writing.Wait()
		settle(context.Background())
		close(settled)
		await(earlierRetired)
		before.inUse.Wait()
		end(context.Background())
	})
}

// await waits for a channel to be closed; nil: for nothing.
func await(closed <-chan struct{}) {
	if closed != nil {
		<-closed
	}
}

// Retired waits until all generations that were replaced are retired, or until ctx ends.
func (c *Current) Retired(ctx context.Context) error {
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

// Part makes a stop wait for replaced generations before it closes their dependencies.
func (c *Current) Part() Part {
	return Part{
		Name: "what was served before a reload", Start: func(context.Context, *Generation) error { return nil },
		Stop: c.Retired,
	}
}
