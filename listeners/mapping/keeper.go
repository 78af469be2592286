package mapping

import (
	"bytes"
	"context"
	"errors"
	"time"

	"belfry/pkg/backoff"
	"belfry/pkg/errs"
	"belfry/pkg/store"
	"belfry/pkg/store/object"
)

// page is how many linked objects are asked for at a time.
const page = 500

// Keeper makes arrays equal to the objects they copy. Its one act, Keep, may be
// done at any time, by any number of keepers, in any order.
type Keeper struct {
	set *store.Set

	// Settle is how long after the deletion of a cascading target an object
	// that is saved with its uuid still counts as saved while the target was
	// being deleted.
	Settle time.Duration

	// Full is told of a target whose array has no room; may be nil.
	Full func(m *store.Mapping, target string)
}

// DefaultSettle is Settle in a server.
const DefaultSettle = 2 * time.Second

// NewKeeper makes a keeper for the stores of a set.
func NewKeeper(set *store.Set) *Keeper { return &Keeper{set: set, Settle: DefaultSettle} }

// Keep makes the target's entries for these source objects what the objects
// say, now. A target that does not exist has no entries. It reports an error
// only when a store fails.
//
// The order of steps is what makes it converge: the target is read before the
// sources, written only as it was read, and the sources are looked at again
// after the write (see docs/mapping.md for the argument, and model_test.go for
// every interleaving of a small world).
//
// Its writes say that they are the mapping's, whoever calls, so that none of
// them is taken for a reason to map again.
func (k *Keeper) Keep(ctx context.Context, m *store.Mapping, target string, sources []string) error {
	ctx = as(ctx, Name)
	for {
		done, err := k.pass(ctx, m, target, sources)
		if done || err != nil && !errors.Is(err, errs.Mismatch) {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}

// as gives the call that a context carries an origin.
func as(ctx context.Context, origin string) context.Context {
	call := store.CallOf(ctx)
	call.Origin = origin
	return store.WithCall(ctx, call)
}

// pass is one round of the protocol; false asks for another.
func (k *Keeper) pass(ctx context.Context, m *store.Mapping, target string, sources []string) (bool, error) {
	base, err := k.set.Store(m.Target).Get(ctx, target)
	if errors.Is(err, errs.NotFound) {
		return true, k.orphans(ctx, m, target, sources)
	}
	if err != nil {
		return false, err
	}
	r := newRound(m, target, base.Body)
	for _, source := range sources {
		if err := k.apply(ctx, r, source, true); err != nil {
			return false, err
		}
	}
	for _, source := range r.was.refilled {
		if err := k.apply(ctx, r, source, false); err != nil {
			return false, err
		}
	}
	if err := k.fit(ctx, r); err != nil {
		return false, err
	}
	next := overflow{marked: r.more, refilled: r.refilled}
	if next.same(r.was) && r.arr.same(r.value) {
		return true, nil
	}
	fields := object.Object{m.Array: r.arr.encode()}
	if !next.same(r.was) {
		fields[Overflow] = next.write(base.Body, m.Array)
	}
	if _, err := k.set.Store(m.Target).Amend(ctx, base, fields); err != nil {
		return false, err
	}
	for _, source := range r.order {
		now, err := k.entry(ctx, m, source, target)
		if err != nil || !bytes.Equal(now, r.seen[source]) {
			return false, err
		}
	}
	return len(next.refilled) == 0 && (!next.marked || r.arr.live >= m.Limit), nil
}

// round is what a pass works on.
type round struct {
	m      *store.Mapping
	target string
	value  []byte // the array as it was read
	arr    *array // and as it will be
	full   bool   // there was no room
	was    overflow

	seen     map[string][]byte // source → the entry that it was found to have
	order    []string          // of seen
	more     bool              // an object may be without room
	refilled []string          // see overflow
}

func newRound(m *store.Mapping, target string, body []byte) *round {
	r := &round{m: m, target: target, value: object.Field(body, m.Array), was: readOverflow(body, m.Array)}
	r.arr = parseArray(r.value)
	r.full, r.more, r.seen = r.arr.live >= m.Limit, r.was.marked, map[string][]byte{}
	return r
}

// apply gives a source the entry that it has now. own says that an event of the
// source's own is in hand, which comes again if this pass breaks off; what is
// changed without one is noted in the target.
func (k *Keeper) apply(ctx context.Context, r *round, source string, own bool) error {
	if _, done := r.seen[source]; done {
		return nil
	}
	entry, err := k.entry(ctx, r.m, source, r.target)
	if err != nil {
		return err
	}
	r.seen[source], r.order = entry, append(r.order, source)
	if entry != nil && r.arr.index(source) < 0 && r.arr.live >= r.m.Limit {
		r.more = true
		k.full(r.m, r.target)
		return nil
	}
	if r.arr.put(source, entry) && !own {
		r.refilled = append(r.refilled, source)
	}
	return nil
}

// fit makes the array as large as it can be and may be.
func (k *Keeper) fit(ctx context.Context, r *round) error {
	if r.arr.trim(r.m.Limit) {
		r.more = true
	}
	if !r.more || r.arr.live >= r.m.Limit {
		r.more = r.more || len(r.refilled) > 0
		return nil
	}
	// The mark goes only if there was room before this pass: an object mapped
	// since then has found the room itself. One that found none was saved
	// before, and the index must have it by now.
	if !r.full {
		if err := backoff.Sleep(ctx, k.set.Store(r.m.Source).Settle()); err != nil {
			return err
		}
	}
	left, err := k.refill(ctx, r)
	r.more = left || r.full || len(r.refilled) > 0
	return err
}

// entry is the target's entry for a source as the source is now; nil for none.
func (k *Keeper) entry(ctx context.Context, m *store.Mapping, source, target string) ([]byte, error) {
	x, err := k.set.Store(m.Source).Get(ctx, source)
	if err != nil && !errors.Is(err, errs.NotFound) {
		return nil, err
	}
	return m.Entry(source, x.Body, target), nil
}

// refill adds linked objects that are not in the array while there is room, a
// page of them at most, and reports whether any may be left over.
func (k *Keeper) refill(ctx context.Context, r *round) (left bool, err error) {
	return k.linked(ctx, r.m, r.target, func(source string) (bool, error) {
		if r.arr.index(source) >= 0 {
			return true, nil
		}
		if r.arr.live >= r.m.Limit || len(r.refilled) >= page {
			return false, nil
		}
		return true, k.apply(ctx, r, source, false)
	})
}

// linked calls each with the objects that the index finds for a target, until
// each returns false, which it reports.
func (k *Keeper) linked(ctx context.Context, m *store.Mapping, target string, each func(source string) (bool, error)) (stopped bool, err error) {
	var after []byte
	for {
		found, next, err := k.set.Store(m.Source).Linked(ctx, m.Key, target, after, page)
		if err != nil {
			return false, err
		}
		for _, x := range found {
			if goOn, err := each(x.UUID); err != nil || !goOn {
				return !goOn, err
			}
		}
		if next == nil {
			return false, nil
		}
		after = next
	}
}

// Fill keeps the entries of every object that names a target: what a target
// needs that came to be after them. An earlier Fill that broke off may have left
// an entry of an object that names the target no more, so those that the array
// holds are looked at too.
func (k *Keeper) Fill(ctx context.Context, m *store.Mapping, target string) error {
	if err := backoff.Sleep(ctx, k.set.Store(m.Source).Settle()); err != nil {
		return err
	}
	t, err := k.set.Store(m.Target).Get(ctx, target)
	if err != nil && !errors.Is(err, errs.NotFound) {
		return err
	}
	sources := parseArray(object.Field(t.Body, m.Array)).uuids()
	_, err = k.linked(ctx, m, target, func(source string) (bool, error) {
		sources = append(sources, source)
		return true, nil
	})
	if err != nil || len(sources) == 0 {
		return err
	}
	return k.Keep(ctx, m, target, sources)
}

func (k *Keeper) full(m *store.Mapping, target string) {
	if k.Full != nil {
		k.Full(m, target)
	}
}
