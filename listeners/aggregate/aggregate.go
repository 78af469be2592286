// Package aggregate is the listener that maintains aggregates: counts, sums, least and greatest values of the objects
// that name another object, in properties of that object.
//
// An event only identifies the work: an object, and the targets that its key names now or named before. The
// contributions are computed from the stores when the event is handled (see belfry/pkg/mapping/aggregates), so events
// may be delivered late, repeatedly and in any order, to any number of workers.
package aggregate

import (
	"context"
	"errors"
	"slices"
	"time"

	"belfry/listeners/mapping/route"
	"belfry/listeners/rounds"
	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/mapping/aggregates"
	"belfry/pkg/object"
	"belfry/pkg/store"
)

// Name is the listener's durable name.
const Name = event.OriginAggregate

// Filters returns the subjects of the events that concern aggregates.
func Filters(set *store.Set) (filters []string) {
	add := func(name event.Name, st string) {
		if f := event.Filter(name, st); !slices.Contains(filters, f) {
			filters = append(filters, f)
		}
	}
	for _, m := range set.Aggregating() {
		add(event.StoreSaved, m.Source)
		add(event.StoreUpdated, m.Source)
		add(event.StoreDeleted, m.Source)
		add(event.StoreSaved, m.Target)
		add(event.StoreDeleted, m.Target)
		if m.OwnerChanges() {
			add(event.StoreUpdated, m.Target)
		}
	}
	return filters
}

// Options configure a Worker.
type Options struct {
	// OnAbsent is that of aggregates.Options.
	OnAbsent func(m *store.Mapping, property string)

	// Sharing are the processes that share targets, with mapping.Definition as their definition and Run to run rounds
	// of mappings that aggregate; nil: this process runs all rounds of the events that it handles.
	Sharing *route.Group
}

// Worker handles events. Events for one target that are in flight together are counted in one write.
type Worker struct {
	set    *store.Set
	engine *aggregates.Engine
	*rounds.Rounds
}

// NewWorker returns a worker for the stores of a set. Close stops it.
func NewWorker(set *store.Set, o Options) *Worker {
	w := &Worker{set: set, engine: aggregates.New(set, aggregates.Options{OnAbsent: o.OnAbsent})}
	w.Rounds = rounds.New(rounds.Options{
		Name: Name, Sharing: o.Sharing, Mappings: set.Aggregating(), First: len(set.Mappings()),
		Begin: func(_ context.Context, k rounds.Key) (rounds.Turn, error) {
			return turn{w.engine, aggregates.Place(k)}, nil
		},
	})
	return w
}

// turn is the right to run the next round of a place.
type turn struct {
	engine *aggregates.Engine
	place  aggregates.Place
}

// Reconcile implements rounds.Turn.
func (t turn) Reconcile(ctx context.Context, sources []string, fence bool, onConflict func() error) error {
	return t.engine.Apply(ctx, t.place, sources, fence, onConflict)
}

// End implements rounds.Turn.
func (turn) End() time.Duration { return 0 }

// Handle applies an event. When it returns nil the aggregates match what the event reported, or something later. When a
// request waits for that, no other worker puts something earlier into them afterwards.
func (w *Worker) Handle(ctx context.Context, e *event.Envelope) error {
	places, err := w.places(ctx, e)
	if err != nil {
		return err
	}
	waits := make([]func(context.Context) error, len(places))
	for i, p := range places {
		waits[i] = w.Begin(rounds.Key(p), e.UUID, awaited(e), e.Ctx.Trace)
	}
	for _, wait := range waits {
		if err := wait(ctx); err != nil {
			return err
		}
	}
	ctx = store.WithCall(ctx, store.Call{Origin: Name, Ctx: event.Ctx{Trace: e.Ctx.Trace}})
	return w.target(ctx, w.engine, e)
}

// awaited reports whether a request waits for the work of an event.
func awaited(e *event.Envelope) bool { return e.Ctx.Wait != "" }

// places are those to which the event's object may have to contribute something else: of the targets that its key named
// before the event and after it, for the owners that it had then. Keys and owners of a later write are in its event.
func (w *Worker) places(ctx context.Context, e *event.Envelope) (all []aggregates.Place, err error) {
	after := e.Object
	read := !e.ObjectOmitted
	for _, m := range w.set.AggregatesFrom(e.Store) {
		if event.ByWorker(e.Origin) && !m.FollowsWorkers {
			continue
		}
		if !read {
			if after, err = w.body(ctx, e); err != nil {
				return nil, err
			}
			read = true
		}
		former := object.Object{}
		for _, field := range []string{m.Key, m.SourceOwner} {
			if value := e.Previous[field]; value != nil {
				former[field] = value
			}
		}
		targets := distinct(store.KeyTargets(former[m.Key]), store.KeyTargets(object.Field(after, m.Key)))
		owners := []string{""}
		if m.SourceOwner != "" {
			owners = distinct([]string{m.SourceOf(e.UUID, former.Encode())}, []string{m.SourceOf(e.UUID, after)})
			owners = slices.DeleteFunc(owners, func(owner string) bool { return owner == "" }) // counts nowhere
		}
		for _, target := range targets {
			for _, owner := range owners {
				all = append(all, aggregates.Place{Mapping: m, Target: target, Owner: owner})
			}
		}
	}
	return all, nil
}

// body returns the object of an event that lacks it, as it is now.
func (w *Worker) body(ctx context.Context, e *event.Envelope) ([]byte, error) {
	now, err := w.set.Store(e.Store).Get(store.WithCall(ctx, store.Call{Origin: Name}), e.UUID)
	if err != nil && !errors.Is(err, errs.NotFound) {
		return nil, err
	}
	return now.Body, nil
}

// distinct returns the texts of both lists, each once.
func distinct(a, b []string) (all []string) {
	for _, text := range slices.Concat(a, b) {
		if !slices.Contains(all, text) {
			all = append(all, text)
		}
	}
	return all
}

// target computes the aggregates of the event's object, if it was created, or its owner may have changed. A write of
// workers does neither.
func (w *Worker) target(ctx context.Context, engine *aggregates.Engine, e *event.Envelope) (err error) {
	if event.ByWorker(e.Origin) {
		return nil
	}
	for _, m := range w.set.AggregatesInto(e.Store) {
		p := aggregates.Place{Mapping: m, Target: e.UUID, Owner: m.TargetOf(e.UUID, e.Object).Owner}
		switch {
		case e.Event == event.StoreSaved:
			if err = engine.Fill(ctx, m, e.UUID, nil); err == nil && awaited(e) {
				err = engine.Refresh(ctx, p, true)
			}
		case e.Event == event.StoreDeleted, e.Event == event.StoreUpdated && m.OwnerChanges():
			err = engine.Refresh(ctx, p, awaited(e))
		}
		if err != nil {
			return err
		}
	}
	return nil
}
