package mapping

import (
	"context"
	"slices"
	"sync"
	"time"

	"belfry/pkg/backoff"
	"belfry/pkg/store"
)

// group is what one write can serve: an array of a target.
type group struct {
	mapping *store.Mapping
	target  string
}

// batch is the sources that a group's next write serves.
type batch struct {
	sources []string
	done    chan struct{} // closed once err says how it went
	err     error
}

func newBatch() *batch { return &batch{done: make(chan struct{})} }

func (b *batch) wait(ctx context.Context) error {
	select {
	case <-b.done:
		return b.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// batches runs one write at a time for each group; what comes in meanwhile
// waits for the group's next. So a batch grows with the time a write takes,
// and a lone event waits for nothing.
type batches struct {
	keep    func(ctx context.Context, g group, sources []string) error
	ctx     context.Context // ends with Close
	cancel  context.CancelFunc
	running sync.WaitGroup

	mu   sync.Mutex
	next map[group]*batch // of every group that has a runner
}

func (b *batches) start(keep func(context.Context, group, []string) error) {
	ctx := store.WithCall(context.Background(), store.Call{Origin: Name})
	b.ctx, b.cancel = context.WithCancel(ctx)
	b.keep, b.next = keep, map[group]*batch{}
}

// Close gives up what is in hand and waits for its end.
func (b *batches) Close() {
	b.cancel()
	b.running.Wait()
}

// join puts a source into its group's next batch.
func (b *batches) join(g group, source string) *batch {
	b.mu.Lock()
	defer b.mu.Unlock()
	next, runs := b.next[g]
	if !runs {
		next = newBatch()
		b.next[g] = next
		b.running.Go(func() { b.run(g) })
	}
	if !slices.Contains(next.sources[max(0, len(next.sources)-8):], source) {
		next.sources = append(next.sources, source)
	}
	return next
}

// take returns the group's batch, or nil when it is empty: the runner is then
// no longer registered and must end.
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
		began := time.Now()
		batch.err = b.keep(b.ctx, g, batch.sources)
		close(batch.done)
		// A large array takes long to write. Resting as long as it took makes
		// the next batch larger and leaves half of a core to everything else.
		if took := time.Since(began); took > restAfter {
			_ = backoff.Sleep(b.ctx, min(took, restAtMost))
		}
	}
}

const (
	restAfter  = time.Millisecond
	restAtMost = 50 * time.Millisecond
)
