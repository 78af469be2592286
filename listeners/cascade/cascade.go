// Package cascade is the listener that deletes the objects linked to a deleted
// one, where a mapping or a reference says so, and clears references to it.
//
// It finds them by the index on the mapping's key, not by the array, which may
// lag. Each is deleted through its store, so that its own event continues the
// cascade, to any depth and through cycles. After a crash the event is
// redelivered, and the objects already deleted are not found again.
//
// An object that is written while its target is being deleted may not be in the
// index in time. Its own event has the worker read the target.
package cascade

import (
	"cmp"
	"context"
	"slices"
	"time"

	"golang.org/x/sync/semaphore"

	"belfry/internal/backoff"
	"belfry/pkg/event"
	"belfry/pkg/mapping"
	"belfry/pkg/store"
)

// Name is the listener's durable name.
const Name = event.OriginCascade

// pageSize is how many linked objects one query returns.
const pageSize = 500

// Filters returns the subjects of the deletions that cascade or clear references, and of the writes of objects with
// such references.
func Filters(set *store.Set) []string {
	var filters []string
	for target := range set.Cascades() {
		filters = append(filters, event.Filter(event.StoreDeleted, target))
	}
	for _, r := range set.References() {
		if r.OnDelete == store.OnDeleteClear {
			filters = append(filters, event.Filter(event.StoreDeleted, r.Target))
		}
		if len(set.Following(r.Source)) > 0 {
			filters = append(filters, event.Filter(event.StoreSaved, r.Source),
				event.Filter(event.StoreUpdated, r.Source))
		}
	}
	slices.Sort(filters)
	return slices.Compact(filters)
}

// atOnce is how many objects a worker deletes or clears at once, for all events together. A cascade that is larger than
// that leaves the backend to others: the requests of a client wait for about as many writes as those of other clients.
const atOnce = 16

// Options configure a Worker.
type Options struct {
	// Concurrency is how many objects the worker deletes or clears at once, for all events together. 0 means 16.
	Concurrency int

	Now func() time.Time // nil: time.Now
}

// Worker handles deletions. It is safe for concurrent use.
type Worker struct {
	set        *store.Set
	reconciler *mapping.Reconciler
	slots      *semaphore.Weighted // one for each object that is being deleted or cleared
	now        func() time.Time
}

// NewWorker returns a worker for the stores of a set.
func NewWorker(set *store.Set, o Options) *Worker {
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Worker{
		set: set, reconciler: mapping.NewReconciler(set, mapping.Options{}),
		slots: semaphore.NewWeighted(int64(cmp.Or(o.Concurrency, atOnce))), now: o.Now,
	}
}

// Handle deletes the objects that cascading mappings link to the deleted object, and clears references to it. For a
// write it does what the references of the object say about those of its targets that have been deleted.
func (w *Worker) Handle(ctx context.Context, e *event.Envelope) error {
	ctx = store.WithCall(ctx, store.Call{Origin: Name, Actor: e.Actor, Ctx: e.Ctx})
	if e.Event != event.StoreDeleted {
		return w.follow(ctx, e)
	}
	for _, m := range w.set.Cascades()[e.Store] {
		if err := w.untilNone(ctx, m.Source, func() (int, error) { return w.deleteIndexed(ctx, m, e) }); err != nil {
			return err
		}
	}
	for _, r := range w.set.Referring(e.Store, store.OnDeleteClear) {
		if err := w.untilNone(ctx, r.Source, func() (int, error) { return w.clearIndexed(ctx, &r, e) }); err != nil {
			return err
		}
	}
	return nil
}

// targetOf returns the target that an event of its deletion is about.
func targetOf(m *store.Mapping, e *event.Envelope) store.Target {
	if e.ObjectOmitted {
		return m.TargetOf(e.UUID, e.Previous.Encode())
	}
	return m.TargetOf(e.UUID, e.Object)
}

// deletedAt is the revision of a deletion, or the time of its event if that is lower.
func deletedAt(e *event.Envelope) uint64 {
	if at, err := time.Parse(time.RFC3339Nano, e.Time); err == nil {
		return min(e.Revision, store.RevisionAt(at))
	}
	return e.Revision
}

// untilNone acts on the objects that an index has until it has nothing more to do. Where the
// index lags it queries once more after the lag has passed.
func (w *Worker) untilNone(ctx context.Context, source string, act func() (int, error)) error {
	lag := w.set.Store(source).IndexLag()
	for {
		n, err := act()
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

// deleteIndexed deletes the objects that the index has now and returns how many objects it
// deleted.
func (w *Worker) deleteIndexed(ctx context.Context, m *store.Mapping, e *event.Envelope) (int, error) {
	objects := w.set.Store(m.Source)
	return w.each(ctx, linked{objects, m.Key, w.set.Store(m.Target), e.UUID},
		func(ctx context.Context, x store.Stored, again again) (bool, error) {
			return mapping.DeleteIf(ctx, objects, x, func(ctx context.Context, x store.Stored) (bool, error) {
				return w.mustDelete(ctx, m, e, x, again)
			})
		})
}

// mustDelete reports whether an object is deleted with the target: when it is
// linked to it, unless it was created more than the grace period after the
// deletion. When the target has been created again, objects written since belong to
// its new incarnation.
//
// The clock may have been set back: an object whose time is later than now was created
// before now. The revision of the deletion may be later than the deletion, because it
// exceeds the target's last one. So the time is the event's.
func (w *Worker) mustDelete(ctx context.Context, m *store.Mapping, e *event.Envelope, x store.Stored,
	again again) (bool, error) {
	if !mapping.LinkedTo(m, x, targetOf(m, e)) {
		return false, nil
	}
	recreated, err := again(ctx, x)
	if err != nil {
		return false, err
	}
	deleted := deletedAt(e)
	if recreated {
		return mapping.UpdatedAt(x) <= deleted, nil
	}
	created := min(mapping.CreatedAt(x), store.RevisionAt(w.now()))
	return created <= deleted+uint64(mapping.GracePeriod.Microseconds()), nil
}
