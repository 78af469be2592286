package mapping

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"belfry/internal/backoff"
	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/mapping"
	"belfry/pkg/store"
)

// group identifies an array of a target, which one write serves.
type group struct {
	mapping *store.Mapping
	target  string
}

// request is an event's part of a batch.
type request struct {
	source string
	fence  bool        // a client waits for the round
	trace  string      // of the event
	here   bool        // no other process is asked for the round: one has asked for it, or one has failed
	notify func(error) // is called when the batch has ended; may be nil
}

// batch is the sources that the next write of a group serves.
type batch struct {
	sources []string
	fence   bool          // of one of the requests
	here    bool          // of one of the requests
	trace   string        // of the first event that has one; the write is a part of it
	done    chan struct{} // closed when err is set
	err     error
	notify  []func(error) // called then
}

func newBatch() *batch { return &batch{done: make(chan struct{})} }

// end ends a batch that no longer accepts requests.
func (b *batch) end(err error) {
	b.err = err
	close(b.done)
	for _, notify := range b.notify {
		notify(err)
	}
}

func (b *batch) wait(ctx context.Context) error {
	select {
	case <-b.done:
		return b.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// batches runs one write at a time for each group. Events that arrive during a
// write join the group's next batch, so a batch grows with the time a write
// takes, and a single event does not wait.
type batches struct {
	await func(ctx context.Context, g group) (*mapping.Turn, error) // a turn of the group's target
	// ends the batch, or has that done later
	round   func(ctx context.Context, turn *mapping.Turn, g group, batch *batch)
	ctx     context.Context // canceled by Close
	cancel  context.CancelFunc
	runners sync.WaitGroup

	mu     sync.Mutex
	next   map[group]*batch // of every group that has a runner
	closed bool
}

// start has batches run; await and round have to be set.
func (b *batches) start() {
	b.ctx, b.cancel = context.WithCancel(context.Background())
	b.next = map[group]*batch{}
}

// Close cancels the writes in flight and waits for them to return. Requests that join a batch later
// fail.
func (b *batches) Close() {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	b.cancel()
	b.runners.Wait()
}

// join adds a request to the next batch of its group.
func (b *batches) join(g group, r request) *batch {
	b.mu.Lock()
	defer b.mu.Unlock()
	next, ok := b.next[g]
	switch {
	case b.closed:
		next = newBatch()
		defer next.end(errs.New(errs.Canceled, "the worker of mappings has stopped"))
	case !ok:
		next = newBatch()
		b.next[g] = next
		b.runners.Go(func() { b.run(g) })
	}
	if !slices.Contains(next.sources[max(0, len(next.sources)-8):], r.source) {
		next.sources = append(next.sources, r.source)
	}
	next.fence = next.fence || r.fence
	next.here = next.here || r.here
	next.trace = cmp.Or(next.trace, r.trace)
	if r.notify != nil {
		next.notify = append(next.notify, r.notify)
	}
	return next
}

// pending reports whether a group's batch has sources. Without sources, it unregisters
// the runner, which must return.
func (b *batches) pending(g group) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.next[g].sources) > 0 {
		return true
	}
	delete(b.next, g)
	return false
}

// take returns the group's batch; later requests join another one.
func (b *batches) take(g group) *batch {
	b.mu.Lock()
	defer b.mu.Unlock()
	batch := b.next[g]
	b.next[g] = newBatch()
	return batch
}

func (b *batches) run(g group) {
	for b.pending(g) {
		turn, err := b.await(b.ctx, g)
		batch := b.take(g)
		if err == nil {
			b.round(store.WithCall(b.ctx, store.Call{Origin: Name, Ctx: event.Ctx{Trace: batch.trace}}), turn, g, batch)
		} else {
			batch.end(err)
		}
		// A large array takes long to write. Waiting as long again makes the
		// next batch larger and leaves half of a core to everything else.
		_ = backoff.Sleep(b.ctx, turn.End())
	}
}
