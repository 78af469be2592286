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

// batch is the sources that the next write of a group serves.
type batch struct {
	sources []string
	fence   bool          // a request waits for one of them
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
	reconcile func(ctx context.Context, g group, sources []string, fence bool) error
	ctx       context.Context // canceled by Close
	cancel    context.CancelFunc
	runners   sync.WaitGroup

	mu     sync.Mutex
	next   map[group]*batch // of every group that has a runner
	closed bool
}

func (b *batches) start(reconcile func(context.Context, group, []string, bool) error) {
	b.ctx, b.cancel = context.WithCancel(context.Background())
	b.reconcile, b.next = reconcile, map[group]*batch{}
}

// Close cancels the writes in flight and waits for them to return. What would join a batch later fails.
func (b *batches) Close() {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	b.cancel()
	b.runners.Wait()
}

// join adds a source to the next batch of its group. notify is called when that has ended; nil: nothing is.
func (b *batches) join(g group, source string, fence bool, trace string, notify func(error)) *batch {
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
	if !slices.Contains(next.sources[max(0, len(next.sources)-8):], source) {
		next.sources = append(next.sources, source)
	}
	next.fence = next.fence || fence
	next.trace = cmp.Or(next.trace, trace)
	if notify != nil {
		next.notify = append(next.notify, notify)
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
		batch.end(b.reconcile(ctx, g, batch.sources, batch.fence))
		// A large array takes long to write. Waiting as long again makes the
		// next batch larger and leaves half of a core to everything else.
		if took := time.Since(start); took > throttleAfter {
			_ = backoff.Sleep(b.ctx, min(took, maxThrottle))
		}
	}
}

// A runner waits after a write that took longer than throttleAfter, as long as
// the write did but at most maxThrottle.
const (
	throttleAfter = time.Millisecond
	maxThrottle   = 50 * time.Millisecond
)
