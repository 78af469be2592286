package mapping

import (
	"bytes"
	"context"
	"slices"
	"time"

	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/object"
	"belfry/pkg/store"
)

// Overflow is the internal field of a target that names those of its arrays
// that had no room for every object. It is what tells a later removal to look
// for the next one.
const Overflow = "_overflow"

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
		if done || err != nil && !errs.Is(err, errs.Mismatch) {
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
	if errs.Is(err, errs.NotFound) {
		return k.orphans(ctx, m, target, sources)
	}
	if err != nil {
		return false, err
	}
	was := object.Field(base.Body, m.Array)
	arr := parseArray(was)
	wasFull := arr.live >= m.Limit
	marked := overflows(base.Body, m.Array)
	more := marked

	seen := make(map[string][]byte, len(sources))
	for _, source := range sources {
		entry, err := k.entry(ctx, m, source, target)
		if err != nil {
			return false, err
		}
		seen[source] = entry
		switch {
		case entry == nil:
			arr.remove(source)
		case arr.index(source) >= 0 || arr.live < m.Limit:
			arr.set(source, entry)
		default:
			more = true
			k.full(m, target)
		}
	}
	if more && arr.live < m.Limit {
		left, err := k.refill(ctx, m, target, arr, seen)
		if err != nil {
			return false, err
		}
		// The mark goes only if there was room before this pass: an object
		// mapped since then has found the room itself.
		more = left || wasFull
	}

	if more == marked && arr.same(was) {
		return true, nil
	}
	fields := object.Object{m.Array: arr.encode()}
	if more != marked {
		fields[Overflow] = mark(base.Body, m.Array, more)
	}
	if _, err := k.set.Store(m.Target).Amend(ctx, base, fields); err != nil {
		return false, err
	}
	for source, entry := range seen {
		now, err := k.entry(ctx, m, source, target)
		if err != nil || !bytes.Equal(now, entry) {
			return false, err
		}
	}
	return !more || arr.live >= m.Limit, nil
}

// entry is the target's entry for a source as the source is now; nil for none.
func (k *Keeper) entry(ctx context.Context, m *store.Mapping, source, target string) ([]byte, error) {
	x, err := k.set.Store(m.Source).Get(ctx, source)
	if err != nil && !errs.Is(err, errs.NotFound) {
		return nil, err
	}
	return m.Entry(source, x.Body, target), nil
}

// refill adds linked objects that are not in the array while there is room,
// and reports whether any was left over.
func (k *Keeper) refill(ctx context.Context, m *store.Mapping, target string, arr *array, seen map[string][]byte) (left bool, err error) {
	return k.linked(ctx, m, target, func(source string) (bool, error) {
		if arr.index(source) >= 0 {
			return true, nil
		}
		entry, err := k.entry(ctx, m, source, target)
		if err != nil || entry == nil {
			return true, err
		}
		if arr.live >= m.Limit {
			return false, nil
		}
		seen[source] = entry
		arr.set(source, entry)
		return true, nil
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
// needs that came to be after them.
func (k *Keeper) Fill(ctx context.Context, m *store.Mapping, target string) error {
	if err := Pause(ctx, k.set.Store(m.Source).Settle()); err != nil {
		return err
	}
	var sources []string
	_, err := k.linked(ctx, m, target, func(source string) (bool, error) {
		sources = append(sources, source)
		return true, nil
	})
	if err != nil || len(sources) == 0 {
		return err
	}
	return k.Keep(ctx, m, target, sources)
}

// orphans deletes objects that were saved while their cascading target was
// being deleted. It asks for another pass when the target is back.
func (k *Keeper) orphans(ctx context.Context, m *store.Mapping, target string, sources []string) (bool, error) {
	if !m.Cascade {
		return true, nil
	}
	deleted, gone, err := k.set.Store(m.Target).Deleted(ctx, target)
	if err != nil || !gone {
		if err != nil {
			return false, err
		}
		back, err := k.set.Store(m.Target).Exists(ctx, target)
		return !back, err
	}
	ctx = as(ctx, event.OriginCascade)
	for _, source := range sources {
		if _, err := Orphan(ctx, k.set, m, source, target, k.Until(deleted)); err != nil {
			return false, err
		}
	}
	return true, nil
}

// Orphan deletes a source object if it names a target that is going, and was
// last written at or before the revision until, which tells objects of the
// target's life from those of a later one. It reports whether it deleted.
func Orphan(ctx context.Context, set *store.Set, m *store.Mapping, source, target string, until uint64) (bool, error) {
	sources := set.Store(m.Source)
	for {
		x, err := sources.Get(ctx, source)
		if errs.Is(err, errs.NotFound) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		if !goesWith(m, x, target, until) {
			return false, nil
		}
		err = sources.Delete(ctx, source, x.Revision)
		switch {
		case err == nil:
			return true, nil
		case errs.Is(err, errs.NotFound):
			return false, nil
		case !errs.Is(err, errs.Mismatch) && !errs.Is(err, errs.Conflict):
			return false, err
		}
		if err := ctx.Err(); err != nil {
			return false, err
		}
	}
}

// goesWith reports whether an object names a target and was last written at or
// before a revision.
func goesWith(m *store.Mapping, x store.Stored, target string, until uint64) bool {
	return x.Revision <= until && slices.Contains(store.Names(object.Field(x.Body, m.Key)), target)
}

// Until is the last revision of an object that goes with a target that was
// deleted and is not back.
func (k *Keeper) Until(deleted uint64) uint64 {
	return deleted + uint64(k.Settle.Microseconds())
}

// Doomed reports whether an object should have gone with its target, which was
// deleted at a revision and is not back.
func (k *Keeper) Doomed(m *store.Mapping, x store.Stored, target string, deleted uint64) bool {
	return goesWith(m, x, target, k.Until(deleted))
}

func (k *Keeper) full(m *store.Mapping, target string) {
	if k.Full != nil {
		k.Full(m, target)
	}
}

// overflows reports whether a target's mark names an array.
func overflows(body []byte, name string) bool {
	found := false
	object.Elements(object.Field(body, Overflow), func(v []byte) bool {
		text, _ := object.Text(v)
		found = text == name
		return !found
	})
	return found
}

// mark returns the field Overflow with an array's name added or taken away;
// nil when none is left.
func mark(body []byte, name string, on bool) []byte {
	var names []string
	object.Elements(object.Field(body, Overflow), func(v []byte) bool {
		if text, ok := object.Text(v); ok && text != name {
			names = append(names, text)
		}
		return true
	})
	if on {
		names = append(names, name)
	}
	if len(names) == 0 {
		return nil
	}
	o := object.Object{}
	o.Set(Overflow, names)
	return o[Overflow]
}

// Pause waits, or reports the context's end.
func Pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
