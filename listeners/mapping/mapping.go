// Package mapping is the listener that keeps copies of objects in arrays of
// other objects, as the configuration's map says.
//
// An event only says where to look: at an object, and at the targets that its
// key names now or named before. What is written is computed from the stores
// as they are then, so events may come late, twice or in any order, to any
// number of workers.
package mapping

import (
	"context"
	"errors"
	"slices"

	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/store"
	"belfry/pkg/store/object"
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
	}
	return filters
}

// Worker handles events. Events for one target that are in hand together are
// applied in one write.
type Worker struct {
	keeper *Keeper
	batches
}

// NewWorker makes a worker. Close ends it.
func NewWorker(keeper *Keeper) *Worker {
	w := &Worker{keeper: keeper}
	w.start(func(ctx context.Context, g group, sources []string) error {
		return keeper.Keep(ctx, g.mapping, g.target, sources)
	})
	return w
}

// Handle applies an event. It returns nil once the arrays hold what it brought.
func (w *Worker) Handle(ctx context.Context, e *event.Envelope) error {
	if e.Origin == Name {
		return nil // an array was kept: a worker's update never maps again
	}
	groups, err := w.groups(ctx, e)
	if err != nil {
		return err
	}
	joined := make([]*batch, len(groups))
	for i, g := range groups {
		joined[i] = w.join(g, e.UUID)
	}
	for _, b := range joined {
		if err := b.wait(ctx); err != nil {
			return err
		}
	}
	return w.fill(ctx, e)
}

// groups are the arrays that may have to hold the event's object, or not any more.
func (w *Worker) groups(ctx context.Context, e *event.Envelope) ([]group, error) {
	var groups []group
	for _, m := range w.keeper.set.From(e.Store) {
		targets, err := w.targets(ctx, m, e)
		if err != nil {
			return nil, err
		}
		for _, target := range targets {
			groups = append(groups, group{m, target})
		}
	}
	return groups, nil
}

// fill fills the arrays of an object that is new.
func (w *Worker) fill(ctx context.Context, e *event.Envelope) error {
	if e.Event != event.StoreSaved {
		return nil
	}
	for _, m := range w.keeper.set.Onto(e.Store) {
		if err := w.keeper.Fill(ctx, m, e.UUID); err != nil {
			return err
		}
	}
	return nil
}

// targets are those that the key named before the event and after it. Those
// that it names by now have an event of their own, unless this one came
// without its object.
func (w *Worker) targets(ctx context.Context, m *store.Mapping, e *event.Envelope) ([]string, error) {
	targets := store.Names(e.Previous[m.Key])
	after := object.Field(e.Object, m.Key)
	if e.ObjectOmitted {
		now, err := w.keeper.set.Store(m.Source).Get(ctx, e.UUID)
		if err != nil && !errors.Is(err, errs.NotFound) {
			return nil, err
		}
		after = object.Field(now.Body, m.Key)
	}
	for _, t := range store.Names(after) {
		if !slices.Contains(targets, t) {
			targets = append(targets, t)
		}
	}
	return targets, nil
}
