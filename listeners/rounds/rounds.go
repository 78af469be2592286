// Package rounds runs rounds, which make what a target has of other objects match these objects. It runs one round at a
// time for each target, which serves all events that have arrived during the one before. Where several processes have
// events of one target, its owner among them runs the rounds: see package route.
package rounds

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"belfry/internal/backoff"
	"belfry/listeners/mapping/route"
	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/store"
)

// Key identifies what a round writes: an array of a target, or its aggregates.
type Key struct {
	Mapping *store.Mapping
	Target  string
	Owner   string // of the objects that are counted; "" if the mapping does not ask for it
}

// Turn is the right to run the next round of a target.
type Turn interface {
	// Reconcile runs the round for these sources. With fence, no round that has begun before can bring back an older
	// state of them once this one returns. If another process has written the target during the round, it is repeated,
	// unless onConflict returns an error, which is then returned.
	Reconcile(ctx context.Context, sources []string, fence bool, onConflict func() error) error

	// End ends the turn, and returns the length of the pause that follows.
	End() time.Duration
}

// Options configure Rounds.
type Options struct {
	Name string // of the listener, which is the origin of its writes

	// Begin waits for a turn.
	Begin func(ctx context.Context, k Key) (Turn, error)

	// Sharing are the processes that share targets; nil: this process runs all rounds of the events that it handles.
	Sharing *route.Group

	// Mappings are those of the keys, and First is the place of the first one in the definition of Sharing.
	Mappings []store.Mapping
	First    int
}

// Rounds runs rounds. Events that arrive during a round join the next batch of its key, so a batch grows with the time
// that a round takes, and a single event does not wait.
type Rounds struct {
	opts      Options
	places    map[*store.Mapping]int // of the mappings in the definition of Sharing
	contended contended
	ctx       context.Context // canceled by Close
	cancel    context.CancelFunc
	runners   sync.WaitGroup

	mu     sync.Mutex
	next   map[Key]*batch // of every key that has a runner
	closed bool
}

// New returns rounds without any. Close stops them.
func New(o Options) *Rounds {
	r := &Rounds{opts: o, places: map[*store.Mapping]int{}, next: map[Key]*batch{}}
	for i := range o.Mappings {
		r.places[&o.Mappings[i]] = o.First + i
	}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	return r
}

// Close cancels the rounds in flight and waits for them to return. Requests that join a batch later
// fail.
func (r *Rounds) Close() {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.cancel()
	r.runners.Wait()
}

// join adds a request to the next batch of its key.
func (r *Rounds) join(k Key, q request) *batch {
	r.mu.Lock()
	defer r.mu.Unlock()
	next, ok := r.next[k]
	switch {
	case r.closed:
		next = newBatch()
		defer next.end(errs.New(errs.Canceled, "the worker of the listener %s has stopped", r.opts.Name))
	case !ok:
		next = newBatch()
		r.next[k] = next
		r.runners.Go(func() { r.run(k) })
	}
	if !slices.Contains(next.sources[max(0, len(next.sources)-8):], q.source) {
		next.sources = append(next.sources, q.source)
	}
	next.fence = next.fence || q.fence
	next.here = next.here || q.here
	next.trace = cmp.Or(next.trace, q.trace)
	if q.notify != nil {
		next.notify = append(next.notify, q.notify)
	}
	return next
}

// pending reports whether a key's batch has sources. Without sources, it unregisters
// the runner, which must return.
func (r *Rounds) pending(k Key) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.next[k].sources) > 0 {
		return true
	}
	delete(r.next, k)
	return false
}

// take returns the key's batch; later requests join another one.
func (r *Rounds) take(k Key) *batch {
	r.mu.Lock()
	defer r.mu.Unlock()
	batch := r.next[k]
	r.next[k] = newBatch()
	return batch
}

func (r *Rounds) run(k Key) {
	for r.pending(k) {
		turn, err := r.opts.Begin(r.ctx, k)
		batch := r.take(k)
		if err != nil {
			batch.end(err)
			continue
		}
		call := store.Call{Origin: r.opts.Name, Ctx: event.Ctx{Trace: batch.trace}}
		r.round(store.WithCall(r.ctx, call), turn, k, batch)
		// A large array takes long to write. Waiting as long again makes the
		// next batch larger and leaves half of a core to everything else.
		_ = backoff.Sleep(r.ctx, turn.End())
	}
}
