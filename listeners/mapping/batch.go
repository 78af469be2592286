package mapping

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"belfry/internal/backoff"
	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/store"
)

// group identifies an array of a target, which one write serves.
type group struct {
	mapping *store.Mapping
	target  string
}

// request is what joins a batch.
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

// end ends a batch that nobody joins any more.
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
	round   func(ctx context.Context, g group, b *batch) (size int) // ends b, or has that done later; size of the array that it wrote
	ctx     context.Context                                         // canceled by Close
	cancel  context.CancelFunc
	runners sync.WaitGroup

	mu     sync.Mutex
	next   map[group]*batch // of every group that has a runner
	closed bool
}

func (b *batches) start(round func(context.Context, group, *batch) int) {
	b.ctx, b.cancel = context.WithCancel(context.Background())
	b.round, b.next = round, map[group]*batch{}
}

// Close cancels the writes in flight and waits for them to return. What would join a batch later fails.
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

// take returns the group's batch, or nil when it is empty: the runner is then
// unregistered and must return.
func (b *batches) take(g group) *batch {
	b.mu.Lock()
	defer b.mu.Unlock()
	batch := b.next[g]
	if len(batch.sources) == 0 {
		delete(b.next, g)
		return nil
	}
	b.next[g] = newBatch()
	return batch
}

func (b *batches) run(g group) {
	for {
		batch := b.take(g)
		if batch == nil {
			return
		}
		start := time.Now()
		ctx := store.WithCall(b.ctx, store.Call{Origin: Name, Ctx: event.Ctx{Trace: batch.trace}})
		size := b.round(ctx, g, batch)
		// Waiting as long again as it takes to write a large array makes the next batch larger, and leaves half of a core to
		// everything else. A small one is written often where that takes long for another reason.
		if took := time.Since(start); size >= throttleFrom {
			_ = backoff.Sleep(b.ctx, min(took, maxThrottle))
		}
	}
}

// A runner waits after a write of an array of throttleFrom bytes, as long as the write took but at most maxThrottle.
const (
	throttleFrom = 32 << 10
	maxThrottle  = 50 * time.Millisecond
)
