package driver

import (
	"context"
	"slices"
	"sync"
	"time"
)

// Batcher combines concurrent calls into batches, for a backend where a batch
// costs little more than a single item. A call that finds fewer than the
// maximum of batches in flight runs at once, alone; other calls wait until a
// batch ends and then run together. No call waits for more calls to arrive, and
// batches grow with the load.
type Batcher[T any] struct {
	maxInFlight int
	maxItems    int
	patience    time.Duration // 0: without end
	run         func(ctx context.Context, items []T) []error

	mu       sync.Mutex
	inFlight int
	waiting  []*batchCall[T]
}

// NewBatcher returns a Batcher with at most maxInFlight batches in flight, each
// of at most maxItems items. run handles each item independently, bounds its
// own time, and returns an error for each item, in their order.
func NewBatcher[T any](maxInFlight, maxItems int, run func(ctx context.Context, items []T) []error) *Batcher[T] {
	return &Batcher[T]{maxInFlight: maxInFlight, maxItems: maxItems, run: run}
}

// WithPatience bounds how long a call waits for one of the batches in flight to end. Then calls that wait run together
// beside these, which may be lost: a server that does not reply to some requests does not delay all others. It is
// called before the first call.
func (b *Batcher[T]) WithPatience(d time.Duration) *Batcher[T] {
	b.patience = d
	return b
}

// batchCall is a call that waits for a batch to end.
type batchCall[T any] struct {
	item T
	done chan error
}

// Do handles an item and returns its error. When ctx ends while the item is in
// a batch with others, Do returns the error of ctx and the item may still be
// handled: one caller can't cancel a shared batch.
func (b *Batcher[T]) Do(ctx context.Context, item T) error {
	b.mu.Lock()
	if b.inFlight < b.maxInFlight {
		b.inFlight++
		b.mu.Unlock()
		defer b.next()
		return b.run(ctx, []T{item})[0]
	}
	c := &batchCall[T]{item: item, done: make(chan error, 1)}
	b.waiting = append(b.waiting, c)
	b.mu.Unlock()
	var late <-chan time.Time
	if b.patience > 0 {
		timer := time.NewTimer(b.patience)
		defer timer.Stop()
		late = timer.C
	}
	for {
		select {
		case err := <-c.done:
			return err
		case <-late:
			b.runBeside(c)
		case <-ctx.Done():
			b.drop(c)
			return ctx.Err()
		}
	}
}

// runBeside starts a batch more than the maximum if a call still waits for one.
func (b *Batcher[T]) runBeside(c *batchCall[T]) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if slices.Contains(b.waiting, c) {
		b.inFlight++
		b.start()
	}
}

// drop removes a waiting call whose context ended.
func (b *Batcher[T]) drop(c *batchCall[T]) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if i := slices.Index(b.waiting, c); i >= 0 {
		b.waiting = slices.Delete(b.waiting, i, i+1)
	}
}

// next ends a batch and starts one of the calls that wait.
func (b *Batcher[T]) next() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.waiting) == 0 || b.inFlight > b.maxInFlight {
		b.inFlight--
		return
	}
	b.start()
}

// start starts a batch of calls that wait. The lock must be held.
func (b *Batcher[T]) start() {
	n := min(len(b.waiting), b.maxItems)
	calls := slices.Clone(b.waiting[:n])
	b.waiting = slices.Delete(b.waiting, 0, n)
	go b.runBatch(calls)
}

func (b *Batcher[T]) runBatch(calls []*batchCall[T]) {
	items := make([]T, len(calls))
	for i, c := range calls {
		items[i] = c.item
	}
	for i, err := range b.run(context.Background(), items) {
		calls[i].done <- err
	}
	b.next()
}
