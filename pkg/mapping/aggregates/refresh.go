package aggregates

import (
	"bytes"
	"context"
	"errors"
	"strconv"
	"time"

	"belfry/internal/backoff"
	"belfry/pkg/errs"
	"belfry/pkg/object"
	"belfry/pkg/store"
	"belfry/pkg/store/aggregate"
	"belfry/pkg/store/driver"
)

// refresh makes the properties of a target match the contributions. A target whose aggregates were not computed of all
// objects by this definition is left as it is, unless whole says that all objects have been applied.
//
// Convergence depends on the order of the steps: the target is read before the accumulator, it is written only if it is
// unchanged, and after a write both are read again. Otherwise a slow worker could write values of an accumulator
// from before the one by which another worker has found the target right.
func (e *Engine) refresh(ctx context.Context, p Place, fence, whole bool, onConflict func() error) error {
	target := e.set.Store(p.Mapping.Target)
	for {
		base, err := target.Get(ctx, p.Target)
		if errors.Is(err, errs.NotFound) {
			return e.tidy(ctx, p)
		}
		if err != nil {
			return err
		}
		fields, owner, err := e.differences(ctx, p.Mapping, base, whole)
		if err != nil {
			return err
		}
		if len(fields) == 0 && !fence {
			if owner != p.Owner {
				return e.tidy(ctx, p)
			}
			return nil
		}
		_, err = store.NewWorker(target).CompareAndSet(ctx, base, fields)
		if repeat, err := again(ctx, err, onConflict); err != nil {
			return err
		} else if !repeat {
			fence = false
		}
	}
}

// differences are the properties of a target that differ from the contributions. nil: it lacks the property.
func (e *Engine) differences(ctx context.Context, m *store.Mapping, base store.Stored, whole bool) (
	fields object.Object, owner string, err error) {
	target := m.TargetOf(base.UUID, base.Body)
	made := e.set.Store(m.Target).Aggregates()
	isCurrent := made.IsCurrent(base.Body, m.Source)
	if !isCurrent && !whole {
		return nil, target.Owner, nil
	}
	values, err := e.Properties(ctx, m, target)
	if err != nil {
		return nil, "", err
	}
	fields = object.Object{}
	for name, value := range values {
		if !bytes.Equal(value, object.Field(base.Body, name)) {
			fields[name] = value
		}
	}
	if !isCurrent {
		fields[store.AggregatesField] = made.Current(base.Body, m.Source)
	}
	return fields, target.Owner, nil
}

// Properties are those of a target by the contributions; nil for one that it lacks.
func (e *Engine) Properties(ctx context.Context, m *store.Mapping, target store.Target) (object.Object, error) {
	p := Place{Mapping: m, Target: target.UUID, Owner: target.Owner}
	acc := held{Accumulator: &aggregate.Accumulator{}}
	if m.SourceOwner == "" || target.Owner != "" { // else nothing has its owner
		var err error
		if acc, err = (&round{Engine: e, p: p, of: p.of()}).read(ctx, p.of().ID()); err != nil {
			return nil, err
		}
	}
	all, waited := object.Object{}, false
	for _, a := range m.Aggregates {
		var value []byte
		switch {
		case a.Function == store.CountFunction:
			value = strconv.AppendInt(nil, acc.Count, 10)
		case a.Function == store.SumFunction:
			if value = acc.Sum(a.Field); value == nil {
				e.onAbsent(m, a.Property)
			}
		case acc.Count == 0:
		case acc.Long[a.Field] > 0:
			e.onAbsent(m, a.Property)
		default:
			if lag := lagOf(e.records(m)); !waited && lag > 0 {
				if err := backoff.Sleep(ctx, lag); err != nil {
					return nil, err
				}
				waited = true
			}
			var err error
			if value, err = e.extreme(ctx, p, a); err != nil {
				return nil, err
			}
		}
		all[a.Property] = value
	}
	return all, nil
}

func lagOf(s driver.Store) time.Duration {
	if l, ok := s.(driver.IndexLagger); ok {
		return l.IndexLag()
	}
	return 0
}

// extremePage is how many contributions are read at once for a least or greatest value: the first one may have changed
// since the index found it.
const extremePage = 2

// extreme is the least or greatest value of a field; nil if no object has one.
func (e *Engine) extreme(ctx context.Context, p Place, a store.Aggregate) ([]byte, error) {
	place := -1
	for i, field := range p.Mapping.Ordered() {
		if field == a.Field {
			place = i
		}
	}
	q := p.of().Extreme(place, a.Field, a.Function == store.MaxFunction, extremePage)
	for {
		page, err := e.records(p.Mapping).Query(ctx, q)
		if err != nil {
			return nil, err
		}
		for _, record := range page.Records {
			c, err := aggregate.DecodeContribution(record.Body)
			if err != nil {
				return nil, err
			}
			if value, ok := c.Has(p.of().ID(), a.Field); ok {
				return value, nil
			}
		}
		if q.After = page.Next; q.After == nil {
			return nil, nil
		}
	}
}

// tidy removes the accumulator of a place without contributions, whose target does not exist or has another owner. No
// property depends on it.
func (e *Engine) tidy(ctx context.Context, p Place) error {
	r := &round{Engine: e, p: p, of: p.of()}
	acc, err := r.read(ctx, r.of.ID())
	if err != nil || !acc.exists || acc.Count > 0 {
		return err
	}
	if err := r.settle(ctx, acc); err != nil {
		return err
	}
	err = r.put(ctx, driver.Write{UUID: r.of.ID(), IfRevision: acc.revision,
		Revision: r.nextRevision(p.Mapping, acc.revision)})
	if errors.Is(err, errs.Mismatch) {
		return nil // it is in use again
	}
	return err
}
