package aggregates

import (
	"context"
	"errors"
	"slices"

	"belfry/pkg/errs"
	"belfry/pkg/store/aggregate"
	"belfry/pkg/store/driver"
)

// contribute makes what objects contribute to a place match the objects as they are now.
func (e *Engine) contribute(ctx context.Context, p Place, sources []string, fence bool,
	onConflict func() error) error {
	sources = slices.Compact(slices.Sorted(slices.Values(sources)))
	for chunk := range slices.Chunk(sources, Batch) {
		for left := chunk; len(left) > 0; {
			r := &round{Engine: e, p: p, of: p.of(), fence: fence}
			changed, err := r.run(ctx, left)
			if repeat, err := again(ctx, err, onConflict); err != nil {
				return err
			} else if !repeat {
				left, fence = changed, fence && !r.wrote
			}
		}
	}
	return nil
}

// round is one write of an accumulator.
type round struct {
	*Engine
	p     Place
	of    aggregate.Place
	fence bool
	wrote bool // the accumulator
}

// held is an accumulator as it was read.
type held struct {
	*aggregate.Accumulator
	revision uint64 // of the record, or of its tombstone
	exists   bool
}

// run counts these objects as they are now, and returns those that have changed meanwhile.
//
// Exactness depends on the order of the steps: the accumulator is read before the contributions and the objects, and is
// written only if it is unchanged. So the contributions are those that it counts. And an object that has changed since
// is counted by a round that reads the accumulator later, or is read again after the write.
func (r *round) run(ctx context.Context, sources []string) (changed []string, err error) {
	acc, err := r.read(ctx, r.of.ID())
	if err != nil {
		return nil, err
	}
	if err := r.settle(ctx, acc); err != nil {
		return nil, err
	}
	want := make([]*aggregate.Values, len(sources))
	err = r.each(ctx, len(sources), func(ctx context.Context, i int) (err error) {
		want[i], err = r.values(ctx, r.p, sources[i])
		return err
	})
	if err != nil {
		return nil, err
	}
	if !acc.exists {
		if !slices.ContainsFunc(want, func(v *aggregate.Values) bool { return v != nil }) {
			return nil, nil // there are no contributions without an accumulator
		}
		return sources, r.create(ctx, acc)
	}
	ops, before, err := r.ops(ctx, sources, want)
	if err != nil || len(ops) == 0 && !r.fence {
		return nil, err
	}
	next := acc.Next()
	for i, op := range ops {
		next.Change(op, before[i])
	}
	revision := r.nextRevision(r.p.Mapping, acc.revision)
	if err := r.put(ctx, driver.Write{UUID: r.of.ID(), IfRevision: acc.revision, Revision: revision,
		Body: next.Encode()}); err != nil {
		return nil, err
	}
	r.wrote = true
	if err := r.makeAll(ctx, ops); err != nil {
		return nil, err
	}
	r.remember(r.of.ID(), revision)
	return r.recheck(ctx, ops)
}

// create makes an accumulator without contributions, which is then read. Writing it with its first contributions would
// not be safe: it may have been made and removed since it was read, and nothing of that would be left to compare.
func (r *round) create(ctx context.Context, acc held) error {
	err := r.put(ctx, driver.Write{UUID: r.of.ID(), Revision: r.nextRevision(r.p.Mapping, acc.revision),
		Body: (&aggregate.Accumulator{}).Encode()})
	if errors.Is(err, errs.Mismatch) {
		return nil // another one did
	}
	return err
}

// ops are the changes of contributions that differ from what objects are to contribute, and what they were.
func (r *round) ops(ctx context.Context, sources []string, want []*aggregate.Values) (ops []aggregate.Op,
	before []*aggregate.Values, err error) {
	all := make([]aggregate.Op, len(sources))
	was := make([]*aggregate.Values, len(sources))
	err = r.each(ctx, len(sources), func(ctx context.Context, i int) error {
		record, found, err := r.records(r.p.Mapping).Get(ctx, r.of.Contribution(sources[i]))
		if err != nil {
			return err
		}
		op := aggregate.Op{Object: sources[i], To: r.nextRevision(r.p.Mapping, record.Revision), Values: want[i]}
		if found && !record.Deleted {
			c, err := aggregate.DecodeContribution(record.Body)
			if err != nil {
				return err
			}
			op.From, was[i] = record.Revision, &c.Values
		}
		all[i] = op
		return nil
	})
	for i, op := range all {
		if err == nil && !was[i].Equal(want[i]) {
			ops, before = append(ops, op), append(before, was[i])
		}
	}
	return ops, before, err
}

// recheck reads objects again, and returns those that contribute something else by now.
func (r *round) recheck(ctx context.Context, ops []aggregate.Op) (changed []string, err error) {
	differs := make([]bool, len(ops))
	err = r.each(ctx, len(ops), func(ctx context.Context, i int) error {
		now, err := r.values(ctx, r.p, ops[i].Object)
		differs[i] = !now.Equal(ops[i].Values)
		return err
	})
	for i, op := range ops {
		if differs[i] {
			changed = append(changed, op.Object)
		}
	}
	return changed, err
}

// read reads an accumulator.
func (r *round) read(ctx context.Context, id string) (held, error) {
	record, found, err := r.records(r.p.Mapping).Get(ctx, id)
	if err != nil || !found || record.Deleted {
		return held{&aggregate.Accumulator{}, record.Revision, false}, err
	}
	a, err := aggregate.DecodeAccumulator(record.Body)
	return held{a, record.Revision, true}, err
}

// settle makes the changes that the last write of an accumulator has counted, unless they are known to be made.
func (r *round) settle(ctx context.Context, acc held) error {
	if len(acc.Ops) == 0 || r.isSettled(r.of.ID(), acc.revision) {
		return nil
	}
	var left []aggregate.Op
	made := make([]bool, len(acc.Ops))
	err := r.each(ctx, len(acc.Ops), func(ctx context.Context, i int) error {
		record, _, err := r.records(r.p.Mapping).Get(ctx, r.of.Contribution(acc.Ops[i].Object))
		made[i] = record.Revision >= acc.Ops[i].To
		return err
	})
	if err != nil {
		return err
	}
	for i, op := range acc.Ops {
		if !made[i] {
			left = append(left, op)
		}
	}
	if err := r.makeAll(ctx, left); err != nil {
		return err
	}
	r.remember(r.of.ID(), acc.revision)
	return nil
}

// makeAll writes contributions. Another worker may have done so: then their revisions are not those from which the
// changes lead.
func (r *round) makeAll(ctx context.Context, ops []aggregate.Op) error {
	return r.each(ctx, len(ops), func(ctx context.Context, i int) error {
		op := ops[i]
		w := driver.Write{UUID: r.of.Contribution(op.Object), IfRevision: op.From, Revision: op.To}
		if op.Values != nil {
			c := r.of.NewContribution(op.Object, op.Values)
			w.Body = c.Encode()
			w.Keys = aggregate.Keys(w.Body)
		}
		if err := r.put(ctx, w); !errors.Is(err, errs.Mismatch) {
			return err
		}
		return nil
	})
}

func (r *round) put(ctx context.Context, w driver.Write) error {
	return r.records(r.p.Mapping).Put(ctx, w)
}

// remember records that all changes of an accumulator's revision are made. A revision is that of one write.
func (e *Engine) remember(id string, revision uint64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.settled) >= maxSettled {
		clear(e.settled)
	}
	e.settled[id] = revision
}

func (e *Engine) isSettled(id string, revision uint64) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.settled[id] == revision
}
