package aggregates

import (
	"context"
	"errors"
	"strconv"

	"belfry/internal/backoff"
	"belfry/pkg/errs"
	"belfry/pkg/object"
	"belfry/pkg/store"
	"belfry/pkg/store/aggregate"
	"belfry/pkg/store/driver"
)

// Recount is Fill for a target whose accumulators may be wrong: they are computed of the contributions, all of which it
// reads.
func (e *Engine) Recount(ctx context.Context, m *store.Mapping, target string) error {
	ctx = withOrigin(ctx)
	if err := e.Fill(ctx, m, target, nil); err != nil {
		return err
	}
	base, err := e.set.Store(m.Target).Get(ctx, target)
	if err != nil && !errors.Is(err, errs.NotFound) {
		return err
	}
	current := m.TargetOf(target, base.Body).Owner
	owners := map[string]bool{current: true}
	if err := e.eachContribution(ctx, m, target, func(c aggregate.Contribution) error {
		owners[c.Owner] = true
		return nil
	}); err != nil {
		return err
	}
	for owner := range owners {
		if err := e.recount(ctx, Place{Mapping: m, Target: target, Owner: owner}); err != nil {
			return err
		}
	}
	return e.refresh(ctx, Place{Mapping: m, Target: target, Owner: current}, false, true, nil)
}

// recountAttempts is how often contributions are read again while other writes change the accumulator.
const recountAttempts = 10

// recount computes an accumulator of its contributions. They do not change as long as it does not.
func (e *Engine) recount(ctx context.Context, p Place) error {
	r := &round{Engine: e, p: p, of: p.of()}
	for range recountAttempts {
		acc, err := r.read(ctx, r.of.ID())
		if err == nil {
			err = r.settle(ctx, acc)
		}
		if err == nil {
			err = backoff.Sleep(ctx, lagOf(e.records(p.Mapping)))
		}
		if err != nil {
			return err
		}
		var counted aggregate.Tally
		if err := e.eachContribution(ctx, p.Mapping, p.Target, func(c aggregate.Contribution) error {
			if c.Place == r.of.ID() {
				counted.Add(&c.Values)
			}
			return nil
		}); err != nil {
			return err
		}
		if counted.Same(acc.Accumulator) {
			return nil
		}
		w := driver.Write{UUID: r.of.ID(), Revision: e.nextRevision(p.Mapping, acc.revision),
			Body: counted.Next().Encode()}
		if acc.exists {
			w.IfRevision = acc.revision
		}
		if err := r.put(ctx, w); !errors.Is(err, errs.Mismatch) {
			return err
		}
	}
	return errs.New(errs.Conflict, "other writes keep changing it")
}

// Expected returns the properties that a target should have by the objects that the index has for it; nil for one that
// it should lack.
func (e *Engine) Expected(ctx context.Context, m *store.Mapping, target store.Target) (object.Object, error) {
	p := Place{Mapping: m, Target: target.UUID, Owner: target.Owner}
	var t aggregate.Tally
	for x, err := range e.set.Store(m.Source).Linked(withOrigin(ctx), m.Key, target.UUID, pageSize) {
		if err != nil {
			return nil, err
		}
		t.Add(Values(p, x.UUID, x.Body))
	}
	return PropertiesOf(m, &t), nil
}

// PropertiesOf returns the properties of a target by the tally of its objects; nil for one that it should lack.
func PropertiesOf(m *store.Mapping, t *aggregate.Tally) object.Object {
	all := object.Object{}
	for _, a := range m.Aggregates {
		switch a.Function {
		case store.CountFunction:
			all[a.Property] = strconv.AppendInt(nil, t.Count, 10)
		case store.SumFunction:
			all[a.Property] = t.Sum(a.Field)
		default:
			all[a.Property] = t.Extreme(a.Field, a.Function == store.MaxFunction)
		}
	}
	return all
}
