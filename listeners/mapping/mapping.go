// Package mapping is the listener that maintains mapped arrays: the copies of
// objects in arrays of other objects as the configuration's map defines.
//
// An event only identifies the work: an object, and the targets that its key
// names now or named before. The entries are computed from the stores when the
// event is handled (see belfry/pkg/mapping), so events may be delivered late,
// repeatedly and in any order, to any number of workers.
package mapping

import (
	"context"
	"errors"
	"slices"

	"belfry/listeners/mapping/route"
	"belfry/listeners/rounds"
	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/mapping"
	"belfry/pkg/object"
	"belfry/pkg/store"
)

// Name is the listener's durable name.
const Name = event.OriginMapping

// Filters returns the subjects of the events that concern mappings.
func Filters(set *store.Set) []string {
	seen := map[string]bool{}
	var filters []string
	add := func(name event.Name, st string) {
		if f := event.Filter(name, st); !seen[f] {
			seen[f] = true
			filters = append(filters, f)
		}
	}
	for _, m := range set.Mappings() {
		add(event.StoreSaved, m.Source)
		add(event.StoreUpdated, m.Source)
		add(event.StoreDeleted, m.Source)
		add(event.StoreSaved, m.Target)
		if m.OwnerChanges() {
			add(event.StoreUpdated, m.Target)
		}
	}
	return filters
}

// Options configure a Worker.
type Options struct {
	// OnFull is that of mapping.Options.
	OnFull func(m *store.Mapping, target string)

	// Sharing are the processes that share targets, with Definition as their definition and Run to run rounds; nil:
	// this process runs all rounds of the events that it handles.
	Sharing *route.Group

	// Pace is that of mapping.Options, which the workers of a process share.
	Pace *mapping.Pace
}

// Worker handles events. Events for one target that are in flight together are
// applied in one write.
type Worker struct {
	set        *store.Set
	reconciler *mapping.Reconciler
	*rounds.Rounds
}

// NewWorker returns a worker for the stores of a set. Close stops it.
func NewWorker(set *store.Set, o Options) *Worker {
	w := &Worker{
		set: set, reconciler: mapping.NewReconciler(set, mapping.Options{OnFull: o.OnFull, Pace: o.Pace}),
	}
	w.Rounds = rounds.New(rounds.Options{
		Name: Name, Sharing: o.Sharing, Mappings: set.Mappings(),
		Begin: func(ctx context.Context, k rounds.Key) (rounds.Turn, error) {
			return w.reconciler.Begin(ctx, k.Mapping, k.Target)
		},
	})
	return w
}

// Handle applies an event. When it returns nil the arrays match what the event
// reported, or something later. When a request waits for that, no other worker
// puts something earlier into them afterwards.
func (w *Worker) Handle(ctx context.Context, e *event.Envelope) error {
	keys, err := w.keys(ctx, e)
	if err != nil {
		return err
	}
	waits := make([]func(context.Context) error, len(keys))
	for i, k := range keys {
		waits[i] = w.Begin(k, e.UUID, awaited(e), e.Ctx.Trace)
	}
	for _, wait := range waits {
		if err := wait(ctx); err != nil {
			return err
		}
	}
	return w.backfill(store.WithCall(ctx, store.Call{Origin: Name, Ctx: event.Ctx{Trace: e.Ctx.Trace}}), e)
}

// awaited reports whether a request waits for the work of an event.
func awaited(e *event.Envelope) bool { return e.Ctx.Wait != "" }

// keys are the arrays that may have to gain, change or lose the entry of the
// event's object.
func (w *Worker) keys(ctx context.Context, e *event.Envelope) ([]rounds.Key, error) {
	var keys []rounds.Key
	for _, m := range w.set.MappingsFrom(e.Store) {
		if event.ByWorker(e.Origin) && !m.FollowsWorkers {
			continue // a write of workers, on which no entry depends
		}
		targets, err := w.targets(ctx, m, e)
		if err != nil {
			return nil, err
		}
		for _, target := range targets {
			keys = append(keys, rounds.Key{Mapping: m, Target: target})
		}
	}
	return keys, nil
}

// backfill fills the arrays of an object that was created, or whose owner may have changed: whether
// it has, the round finds. A write of workers changes neither.
func (w *Worker) backfill(ctx context.Context, e *event.Envelope) (err error) {
	if event.ByWorker(e.Origin) {
		return nil
	}
	for _, m := range w.set.MappingsInto(e.Store) {
		switch {
		case e.Event == event.StoreSaved:
			err = w.reconciler.Backfill(ctx, m, e.UUID)
		case e.Event == event.StoreUpdated && m.OwnerChanges():
			err = w.reconciler.Reconcile(ctx, m, e.UUID, nil)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// targets are those that the key named before the event and after it. Targets
// that it names since a later write are reported by that write's event. An event
// whose object was omitted names none, so the object is read.
func (w *Worker) targets(ctx context.Context, m *store.Mapping, e *event.Envelope) ([]string, error) {
	targets := store.KeyTargets(e.Previous[m.Key])
	after := object.Field(e.Object, m.Key)
	if e.ObjectOmitted {
		now, err := w.set.Store(m.Source).Get(store.WithCall(ctx, store.Call{Origin: Name}), e.UUID)
		if err != nil && !errors.Is(err, errs.NotFound) {
			return nil, err
		}
		after = object.Field(now.Body, m.Key)
	}
	for _, t := range store.KeyTargets(after) {
		if !slices.Contains(targets, t) {
			targets = append(targets, t)
		}
	}
	return targets, nil
}
