package aggregate

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/mapping/aggregates"
	"belfry/pkg/store"
)

// request is an event's part of a batch.
type request struct {
	source string
	fence  bool   // a client waits for the round
	trace  string // of the event
}

// batch is the objects that the next round of a place counts.
type batch struct {
	sources []string
	fence   bool          // of one of the requests
	trace   string        // of the first event that has one; the writes are a part of it
	done    chan struct{} // closed when err is set
	err     error
}

func newBatch() *batch { return &batch{done: make(chan struct{})} }

// end ends a batch that no longer accepts requests.
func (b *batch) end(err error) {
	b.err = err
	close(b.done)
}

func (b *batch) wait(ctx context.Context) error {
	select {
	case <-b.done:
		return b.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// batches runs one round at a time for each place. Events that arrive during a round join the next batch of its place,
// so a batch grows with the time a round takes, and a single event does not wait.
type batches struct {
	round   func(ctx context.Context, p aggregates.Place, b *batch) error
	ctx     context.Context // canceled by Close
	cancel  context.CancelFunc
	runners sync.WaitGroup

	mu     sync.Mutex
	next   map[aggregates.Place]*batch // of every place that has a runner
	closed bool
}

// start has batches run; round has to be set.
func (b *batches) start() {
	b.ctx, b.cancel = context.WithCancel(context.Background())
	b.next = map[aggregates.Place]*batch{}
}

// Close cancels the rounds in flight and waits for them to return. Requests that join a batch later fail.
func (b *batches) Close() {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	b.cancel()
	b.runners.Wait()
}

// join adds a request to the next batch of its place.
func (b *batches) join(p aggregates.Place, r request) *batch {
	b.mu.Lock()
	defer b.mu.Unlock()
	next, ok := b.next[p]
	switch {
	case b.closed:
		next = newBatch()
		defer next.end(errs.New(errs.Canceled, "the worker of aggregates has stopped"))
	case !ok:
		next = newBatch()
		b.next[p] = next
		b.runners.Go(func() { b.run(p) })
	}
	if !slices.Contains(next.sources[max(0, len(next.sources)-8):], r.source) {
		next.sources = append(next.sources, r.source)
	}
	next.fence = next.fence || r.fence
	next.trace = cmp.Or(next.trace, r.trace)
	return next
}

// take returns the batch of a place; later requests join another one. If it has no objects, take unregisters the
// runner, which must return.
func (b *batches) take(p aggregates.Place) (next *batch, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	next = b.next[p]
	if len(next.sources) == 0 {
		delete(b.next, p)
		return nil, false
	}
	b.next[p] = newBatch()
	return next, true
}

func (b *batches) run(p aggregates.Place) {
	for next, ok := b.take(p); ok; next, ok = b.take(p) {
		call := store.Call{Origin: Name, Ctx: event.Ctx{Trace: next.trace}}
		next.end(b.round(store.WithCall(b.ctx, call), p, next))
	}
}
