// Package copies is the listener that keeps copies of referenced objects up to date: the values of other objects that a
// store's copies define.
//
// An event only identifies the work. The copies are computed from the stores when the event is handled (see
// belfry/pkg/mapping), so events may be delivered late, repeatedly and in any order, to any number of workers.
//
//	event of an object with copies, whose reference is new    its own copies
//	event of an object that is copied from, with a change     the copies in all objects that name it
package copies

import (
	"context"
	"slices"
	"sync"

	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/mapping"
	"belfry/pkg/store"
)

// Name is the listener's durable name.
const Name = event.OriginCopy

// Filters returns the subjects of the events that concern copies.
func Filters(all []*store.Copies) []string {
	var filters []string
	for _, k := range all {
		for _, name := range []event.Name{event.StoreSaved, event.StoreUpdated} {
			filters = append(filters, event.Filter(name, k.Store))
		}
		for _, name := range []event.Name{event.StoreSaved, event.StoreUpdated, event.StoreDeleted} {
			filters = append(filters, event.Filter(name, k.Source))
		}
	}
	slices.Sort(filters)
	return slices.Compact(filters)
}

// Worker handles events. Events of one source that are in flight together are handled together.
type Worker struct {
	set    *store.Set
	copier *mapping.Copier
	rounds
}

// NewWorker returns a worker for the stores of a set. Close stops it.
func NewWorker(set *store.Set, o mapping.CopierOptions) *Worker {
	w := &Worker{set: set, copier: mapping.NewCopier(set, o)}
	w.rounds.ctx, w.rounds.cancel = context.WithCancel(context.Background())
	w.rounds.next = map[source]*round{}
	w.rounds.run = func(ctx context.Context, s source) error {
		return w.copier.Spread(store.WithCall(ctx, store.Call{Origin: Name}), s.copies, s.uuid)
	}
	return w
}

// Handle applies an event. When it returns nil the copies match what the event reported, or something later.
func (w *Worker) Handle(ctx context.Context, e *event.Envelope) error {
	if err := w.correct(ctx, e); err != nil {
		return err
	}
	for _, k := range w.following(e) {
		if err := w.rounds.join(source{k, e.UUID}).wait(ctx); err != nil {
			return err
		}
	}
	return nil
}

// HandleSerially is Handle without rounds that events share, in the caller's goroutine.
func (w *Worker) HandleSerially(ctx context.Context, e *event.Envelope) error {
	if err := w.correct(ctx, e); err != nil {
		return err
	}
	for _, k := range w.following(e) {
		if err := w.copier.Spread(ctx, k, e.UUID); err != nil {
			return err
		}
	}
	return nil
}

// correct corrects the copies of an event's object if its references are new. While they are the same, the events of
// the objects that they name do that.
func (w *Worker) correct(ctx context.Context, e *event.Envelope) error {
	s := w.set.Store(e.Store)
	if !w.set.HasCopies(e.Store) || e.Event == event.StoreDeleted {
		return nil
	}
	if e.Event == event.StoreUpdated && !slices.ContainsFunc(s.Copies(), func(c store.Copy) bool {
		return slices.Contains(e.Changed, c.Reference)
	}) {
		return nil
	}
	return w.copier.Correct(store.WithCall(ctx, store.Call{Origin: Name}), s, e.UUID)
}

// following returns the copies that depend on what an event reports.
func (w *Worker) following(e *event.Envelope) (all []*store.Copies) {
	for _, k := range w.set.CopiesFrom(e.Store) {
		if e.Event != event.StoreUpdated || k.Follow(e.Changed) {
			all = append(all, k)
		}
	}
	return all
}

// source identifies the copies of one object.
type source struct {
	copies *store.Copies
	uuid   string
}

// round is one pass over the objects that name a source, for all events that had arrived when it began.
type round struct {
	done chan struct{} // closed when err is set
	err  error
	used bool // an event waits for it
}

func (r *round) wait(ctx context.Context) error {
	select {
	case <-r.done:
		return r.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// rounds runs one pass at a time for each source. Each page of a pass has the latest values of the source. An event
// that arrives during a pass waits for the next one, which all such events share.
type rounds struct {
	run     func(ctx context.Context, s source) error
	ctx     context.Context // canceled by Close
	cancel  context.CancelFunc
	runners sync.WaitGroup

	mu     sync.Mutex
	next   map[source]*round // of every source that has a runner
	closed bool
}

// Close cancels the passes in flight and waits for them to return. Events that arrive later fail.
func (r *rounds) Close() {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.cancel()
	r.runners.Wait()
}

// join returns the next round of a source.
func (r *rounds) join(s source) *round {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		closed := &round{done: make(chan struct{}), err: errs.New(errs.Canceled, "the worker of copies has stopped")}
		close(closed.done)
		return closed
	}
	next, running := r.next[s]
	if !running {
		next = &round{done: make(chan struct{})}
		r.next[s] = next
		r.runners.Go(func() { r.runAll(s) })
	}
	next.used = true
	return next
}

// take returns the round that begins now; nil if no event waits for one, and then the runner must return.
func (r *rounds) take(s source) *round {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.next[s]
	if !now.used {
		delete(r.next, s)
		return nil
	}
	r.next[s] = &round{done: make(chan struct{})}
	return now
}

func (r *rounds) runAll(s source) {
	for now := r.take(s); now != nil; now = r.take(s) {
		now.err = r.run(r.ctx, s)
		close(now.done)
	}
}
