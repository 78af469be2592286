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

	"belfry/pkg/event"
	"belfry/pkg/mapping"
	"belfry/pkg/store"
)

// Name is the listener's durable name.
const Name = event.OriginCopy

// Concurrency is how many events are handled at once.
const Concurrency = 256

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

// Options configure a Worker.
type Options struct {
	mapping.CopierOptions

	// HandOver delivers an event to the listener again, see listener.HandOver. It is needed with CopierOptions.Most.
	HandOver func(ctx context.Context, e *event.Envelope) error
}

// Worker handles events. Events of one source that are in flight together are handled together.
type Worker struct {
	set      *store.Set
	copier   *mapping.Copier
	handOver func(ctx context.Context, e *event.Envelope) error
	rounds
}

// NewWorker returns a worker for the stores of a set. Close stops it.
func NewWorker(set *store.Set, o Options) *Worker {
	w := &Worker{set: set, copier: mapping.NewCopier(set, o.CopierOptions), handOver: o.HandOver}
	w.ctx, w.cancel = context.WithCancel(context.Background())
	w.running = map[source]*runner{}
	w.run = func(ctx context.Context, s source) (*mapping.Rest, error) {
		return w.copier.Spread(store.WithCall(ctx, store.Call{Origin: Name}), s.copies, s.uuid, mapping.Rest{})
	}
	return w
}

// Handle applies an event. When it returns nil the copies match what the event reported, or something later. Of long
// work it does a part, and returns Unfinished.
func (w *Worker) Handle(ctx context.Context, e *event.Envelope) error {
	why := cause{aggregates: e.Origin == event.OriginAggregate, awaited: e.Ctx.Wait != ""}
	return w.handle(ctx, e, func(k *store.Copies) pass { return w.join(source{k, e.UUID}, why).wait })
}

// HandleSerially is Handle and HandOver without rounds that events share, in the caller's goroutine.
func (w *Worker) HandleSerially(ctx context.Context, e *event.Envelope) error {
	return w.HandOver(ctx, w.handle(ctx, e, func(k *store.Copies) pass {
		return func(ctx context.Context) (*mapping.Rest, error) {
			return w.copier.Spread(ctx, k, e.UUID, mapping.Rest{})
		}
	}))
}

// pass waits for a pass over the objects that name an event's object, and returns what is left of it.
type pass func(ctx context.Context) (*mapping.Rest, error)

// handle applies an event. begin begins a pass; all that an event needs begin before the first one is awaited.
func (w *Worker) handle(ctx context.Context, e *event.Envelope, begin func(k *store.Copies) pass) error {
	if e.Ctx.Rest != "" {
		return w.resume(ctx, e)
	}
	if err := w.correct(ctx, e); err != nil {
		return err
	}
	all := w.following(e)
	passes := make([]pass, len(all))
	for i, k := range all {
		passes[i] = begin(k)
	}
	left := Unfinished{}
	for i, k := range all {
		rest, err := passes[i](ctx)
		if err != nil {
			return err
		}
		left.add(e, k, rest)
	}
	return left.orNil()
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
