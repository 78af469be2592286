package driver

import (
	"context"
	"slices"
	"sync"
)

// Gatherer makes fewer acts of many calls, for a backend to which a batch
// costs little more than one item. A call that finds few acts under way makes
// its own at once; the others wait until one ends, and then go together. So
// nobody waits for company, and the more calls come the larger batches are.
type Gatherer[T any] struct {
	Lanes int // acts under way at most
	Most  int // items of an act at most

	// Act acts on items, each for itself, and bounds its own time. It returns
	// an error for each of them, in their order.
	Act func(ctx context.Context, items []T) []error

	mu      sync.Mutex
	running int
	waiting []*call[T]
}

// call is a call that waits for others to end.
type call[T any] struct {
	item T
	done chan error
}

// Do has an item acted on and returns what Act says of it. When ctx ends while
// others act too it returns the error of ctx, and the item may be acted on yet:
// what is shared is not ended by one.
func (g *Gatherer[T]) Do(ctx context.Context, item T) error {
	g.mu.Lock()
	if g.running < g.Lanes {
		g.running++
		g.mu.Unlock()
		defer g.handOver()
		return g.Act(ctx, []T{item})[0]
	}
	c := &call[T]{item: item, done: make(chan error, 1)}
	g.waiting = append(g.waiting, c)
	g.mu.Unlock()
	select {
	case err := <-c.done:
		return err
	case <-ctx.Done():
		g.drop(c)
		return ctx.Err()
	}
}

// drop leaves out a call that nobody waits for any more.
func (g *Gatherer[T]) drop(c *call[T]) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if i := slices.Index(g.waiting, c); i >= 0 {
		g.waiting = slices.Delete(g.waiting, i, i+1)
	}
}

// handOver ends an act, and begins another for those that wait.
func (g *Gatherer[T]) handOver() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.waiting) == 0 {
		g.running--
		return
	}
	n := min(len(g.waiting), g.Most)
	batch := slices.Clone(g.waiting[:n])
	g.waiting = slices.Delete(g.waiting, 0, n)
	go g.together(batch)
}

func (g *Gatherer[T]) together(batch []*call[T]) {
	items := make([]T, len(batch))
	for i, c := range batch {
		items[i] = c.item
	}
	for i, err := range g.Act(context.Background(), items) {
		batch[i].done <- err
	}
	g.handOver()
}
