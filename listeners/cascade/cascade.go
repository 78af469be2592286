// Package cascade is the listener that deletes the objects linked to a deleted
// one, where a mapping says so.
//
// It finds them by the index on the mapping's key, not by the array, which may
// lag. Each is deleted through its store, so that its own event carries the
// cascade on, to any depth and through cycles. A crash in between brings the
// event back, and what is gone already is not found again.
package cascade

import (
	"context"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"belfry/listeners/mapping"
	"belfry/pkg/backoff"
	"belfry/pkg/event"
	"belfry/pkg/store"
)

// Name is the listener's durable name.
const Name = event.OriginCascade

const page = 500

// Filters returns the subjects of the deletions that cascade.
func Filters(set *store.Set) []string {
	var filters []string
	for target := range set.Cascades() {
		filters = append(filters, event.Filter(event.StoreDeleted, target))
	}
	slices.Sort(filters)
	return filters
}

// Worker handles deletions.
type Worker struct {
	set    *store.Set
	settle time.Duration

	// Parallel is how many deletions run at once: they share the backend's
	// syncs. NewWorker sets 64.
	Parallel int
}

// NewWorker makes a worker. An object saved within settle after its target's
// deletion counts as saved while it was being deleted.
func NewWorker(set *store.Set, settle time.Duration) *Worker {
	return &Worker{set: set, settle: settle, Parallel: 64}
}

// Handle deletes what the deleted object's cascading mappings link to it.
func (w *Worker) Handle(ctx context.Context, e *event.Envelope) error {
	ctx = store.WithCall(ctx, store.Call{Origin: Name, Actor: e.Actor, Ctx: e.Ctx})
	for _, m := range w.set.Cascades()[e.Store] {
		if err := w.clear(ctx, m, e); err != nil {
			return err
		}
	}
	return nil
}

// clear deletes until the index finds nothing more to delete. Where the index
// lags it looks once more when everything written by now must be found.
func (w *Worker) clear(ctx context.Context, m *store.Mapping, e *event.Envelope) error {
	lag := w.set.Store(m.Source).Settle()
	for {
		n, err := w.pass(ctx, m, e)
		if err != nil {
			return err
		}
		if n > 0 {
			continue
		}
		if lag == 0 {
			return nil
		}
		if err := backoff.Sleep(ctx, lag); err != nil {
			return err
		}
		lag = 0
	}
}

// pass deletes what the index finds and reports how many objects that were.
func (w *Worker) pass(ctx context.Context, m *store.Mapping, e *event.Envelope) (int, error) {
	objects := w.set.Store(m.Source)
	goes := func(ctx context.Context, x store.Stored) (bool, error) { return w.goes(ctx, m, e, x) }
	total := 0
	var after []byte
	for {
		found, next, err := objects.Linked(ctx, m.Key, e.UUID, after, page)
		if err != nil {
			return total, err
		}
		deleted := make([]bool, len(found))
		g, gctx := errgroup.WithContext(ctx)
		g.SetLimit(w.Parallel)
		for i, x := range found {
			g.Go(func() (err error) {
				deleted[i], err = mapping.Sweep(gctx, objects, x, goes)
				return err
			})
		}
		err = g.Wait()
		for _, d := range deleted {
			if d {
				total++
			}
		}
		if err != nil || next == nil {
			return total, err
		}
		after = next
	}
}

// goes reports whether an object goes with the deleted target: when it is
// linked, unless it was created after the deletion had settled. When the target
// is back, what was written since belongs to its new life.
func (w *Worker) goes(ctx context.Context, m *store.Mapping, e *event.Envelope, x store.Stored) (bool, error) {
	if !mapping.LinkedTo(m, x, e.UUID) {
		return false, nil
	}
	back, err := w.set.Store(m.Target).Exists(ctx, e.UUID)
	if err != nil {
		return false, err
	}
	if back {
		return mapping.Updated(x) <= e.Revision, nil
	}
	return mapping.Created(x) <= e.Revision+uint64(w.settle.Microseconds()), nil
}
