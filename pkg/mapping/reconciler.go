// Package mapping maintains mapped arrays: the copies of source objects in
// arrays of target objects as the configuration's map defines.
//
// A Reconciler makes the entries of a target match its source objects. It computes them
// from the current records. So it can run at any time, any number of times, in any order
// and by any number of workers at once. docs/mapping.md has the protocol and the proof
// that copies converge. The listeners mapping and cascade run it for events, and package
// verify runs it to repair.
package mapping

import (
	"context"
	"errors"
	"slices"

	"golang.org/x/sync/semaphore"

	"belfry/internal/backoff"
	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/object"
	"belfry/pkg/store"
)

// pageSize is how many linked objects one query returns.
const pageSize = 500

// Options configure a Reconciler.
type Options struct {
	// OnFull is called for each object that is refused an entry, because its
	// target's array is at its limit or the entry is too large; may be nil.
	OnFull func(m *store.Mapping, target string)

	Pace *Pace // of rounds; nil: they run whenever they are asked for
}

// Reconciler makes mapped arrays match the objects they copy. It is safe for
// concurrent use, also by several processes on the same stores.
type Reconciler struct {
	set     *store.Set
	onFull  func(m *store.Mapping, target string)
	pace    *Pace
	orphans *semaphore.Weighted // one for each that is being deleted
}

// NewReconciler returns a reconciler for the stores of a set.
func NewReconciler(set *store.Set, o Options) *Reconciler {
	if o.OnFull == nil {
		o.OnFull = func(*store.Mapping, string) {}
	}
	return &Reconciler{set: set, onFull: o.OnFull, pace: o.Pace, orphans: semaphore.NewWeighted(orphansAtOnce)}
}

// Reconcile makes the target's entries for these source objects match the
// objects as they are now. A target that does not exist has no entries; sources
// that a cascade should have deleted with it are deleted. The error is a
// store's, or the context's.
//
// Convergence depends on the order of the steps: the target is read before the
// sources, it is written only if it is unchanged, and the sources are read
// again after the write.
//
// Every write carries the mapping's origin instead of the caller's, so that no listener
// maps because of it again.
func (r *Reconciler) Reconcile(ctx context.Context, m *store.Mapping, target string, sources []string) error {
	t, err := r.Begin(ctx, m, target)
	if err != nil {
		return err
	}
	defer t.End()
	return t.Reconcile(ctx, sources, false, nil)
}

func (r *Reconciler) reconcile(ctx context.Context, t *Turn, sources []string, fence bool,
	onConflict func() error) error {
	ctx = withOrigin(ctx, event.OriginMapping)
	if t.m.Array == "" {
		return r.deleteOrphans(ctx, t.m, t.target, sources)
	}
	for {
		done, wrote, err := r.reconcileOnce(ctx, t, sources, fence)
		fence = fence && !wrote
		if done || err != nil && !errors.Is(err, errs.Mismatch) {
			return err
		}
		if err != nil && onConflict != nil {
			if err := onConflict(); err != nil {
				return err
			}
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}

// withOrigin sets the origin of a context's operations: reads of a worker are not announced.
func withOrigin(ctx context.Context, origin string) context.Context {
	call := store.CallOf(ctx)
	call.Origin = origin
	return store.WithCall(ctx, call)
}

// reconcileOnce runs one round of the protocol; done is false when another is
// required. With fence it writes the target even if nothing changes.
func (r *Reconciler) reconcileOnce(ctx context.Context, t *Turn, sources []string,
	fence bool) (done, wrote bool, err error) {
	m, target := t.m, t.target
	part, err := store.NewWorker(r.set.Store(m.Target)).GetEntries(ctx, target, m.Array, sources)
	if err == nil && part.Entries != nil {
		if waited, err := t.admitPart(ctx, part.Entries.Bytes, len(sources)); err != nil || waited {
			return false, false, err
		}
		if s := newPartRound(m, target, part); s != nil {
			if done, wrote, whole, err := r.reconcilePart(ctx, s, sources, fence); !whole {
				return done, wrote, err
			}
		}
		part.Stored, err = r.set.Store(m.Target).Get(ctx, target)
	}
	if errors.Is(err, errs.NotFound) {
		return true, false, r.deleteOrphans(ctx, m, target, sources)
	}
	if err != nil {
		return false, false, err
	}
	base := part.Stored
	if waited, err := t.admit(ctx, len(base.Body)); err != nil || waited {
		return false, false, err
	}
	s := newRound(m, target, base.Body)
	if s.newOwner { // first, since entries of objects that have another owner leave
		if err := r.applyAll(ctx, s, s.array.uuids(), true); err != nil {
			return false, false, err
		}
	}
	if err := r.applyAll(ctx, s, sources, true); err != nil {
		return false, false, err
	}
	if err := r.applyAll(ctx, s, s.stored.unconfirmed, false); err != nil {
		return false, false, err
	}
	if s.newOwner {
		if err := r.collect(ctx, s); err != nil {
			return false, false, err
		}
	}
	if err := r.fit(ctx, s); err != nil {
		return false, false, err
	}
	next := overflow{marked: s.mark, unconfirmed: s.unconfirmed}
	if next.equal(s.stored) && s.array.equal(s.value) && !s.newOwner {
		if fence {
			_, err = store.NewWorker(r.set.Store(m.Target)).CompareAndSet(ctx, base, nil)
		}
		return err == nil, err == nil, err
	}
	fields := object.Object{m.Array: s.array.encode()}
	if !next.equal(s.stored) {
		fields[OverflowField] = next.update(base.Body, m.Array)
	}
	if s.newOwner {
		fields[OwnersField] = updateOwner(base.Body, m.Array, s.target.Owner)
	}
	if _, err := store.NewWorker(r.set.Store(m.Target)).CompareAndSet(ctx, base, fields); err != nil {
		return false, false, err
	}
	if ok, err := r.confirmed(ctx, s); err != nil || !ok {
		return false, true, err
	}
	return len(next.unconfirmed) == 0 && (!next.marked || s.array.full(m)), true, nil
}

// round is the state of one round.
type round struct {
	m       *store.Mapping
	target  store.Target
	value   []byte   // the array as it was read
	wasFull bool     // it was at its limit when it was read
	stored  overflow // as it was read

	// newOwner: the array is recorded for another owner than the target has, see OwnersField.
	newOwner bool

	array       *array // as it will be written
	mark        bool   // there may be objects without an entry; see overflow
	unconfirmed []string

	applied map[string][]byte // source → the entry computed for it
	order   []string          // the keys of applied
}

func newRound(m *store.Mapping, target string, body []byte) *round {
	s := &round{m: m, target: m.TargetOf(target, body), value: arrayOf(body, m.Array),
		stored: readOverflow(body, m.Array)}
	s.newOwner = m.OwnerChanges() && readOwner(body, m.Array) != s.target.Owner
	s.array = parseArray(s.value)
	s.wasFull, s.mark, s.applied = s.array.full(m), s.stored.marked, map[string][]byte{}
	return s
}

func (r *Reconciler) applyAll(ctx context.Context, s *round, sources []string, hasEvent bool) error {
	for chunk := range slices.Chunk(sources, readAtOnce) {
		read, err := r.readTogether(ctx, s.m, slices.DeleteFunc(slices.Clone(chunk), s.isApplied))
		if err != nil {
			return err
		}
		for _, source := range chunk {
			if err := r.apply(ctx, s, source, hasEvent, read); err != nil {
				return err
			}
		}
	}
	return nil
}

// apply gives a source the entry of its current state, or of its state when this round read it. With hasEvent, an
// event of the source is being handled, and is redelivered if this round fails. Without an event, the target
// records a change as unconfirmed.
func (r *Reconciler) apply(ctx context.Context, s *round, source string, hasEvent bool, read sources) error {
	if _, done := s.applied[source]; done {
		return nil
	}
	entry, tooLarge, err := r.entry(ctx, s.m, source, s.target, read)
	if err != nil {
		return err
	}
	if tooLarge && hasEvent {
		r.onFull(s.m, s.target.UUID)
	}
	if entry == nil && !hasEvent && s.array.index(source) < 0 {
		return nil // this round changes nothing for it, so there is nothing to read again
	}
	s.applied[source], s.order = entry, append(s.order, source)
	if entry != nil && s.array.index(source) < 0 && s.array.full(s.m) {
		s.mark = true
		r.onFull(s.m, s.target.UUID)
		return nil
	}
	s.put(source, hasEvent)
	return nil
}

// isApplied reports whether the entry of a source has been computed.
func (s *round) isApplied(source string) bool {
	_, applied := s.applied[source]
	return applied
}

// put gives a source the entry that has been computed for it.
func (s *round) put(source string, hasEvent bool) {
	if s.array.put(source, s.applied[source]) && !hasEvent {
		s.unconfirmed = append(s.unconfirmed, source)
	}
}

// fit trims the array to its limit, or refills it when it is below the limit
// and marked, and decides whether the mark stays.
func (r *Reconciler) fit(ctx context.Context, s *round) error {
	if s.array.trim(s.m) {
		s.mark = true
	}
	if !s.mark || s.array.full(s.m) {
		return nil
	}
	// The mark is cleared only if the array was below its limit before this
	// round: an object mapped since then has been given an entry by its own
	// event. One that was refused an entry was saved before, and after IndexLag
	// the index has it.
	if !s.wasFull {
		if err := backoff.Sleep(ctx, r.set.Store(s.m.Source).IndexLag()); err != nil {
			return err
		}
	}
	left, err := r.refill(ctx, s)
	s.mark = left || s.wasFull || len(s.unconfirmed) > 0
	return err
}

// refill adds linked objects that have no entry until the array is at its
// limit, a page of them at most, and reports whether any may be left.
func (r *Reconciler) refill(ctx context.Context, s *round) (left bool, err error) {
	isFull := func() bool { return s.array.full(s.m) || len(s.unconfirmed) >= pageSize }
	reads := 1 // at once: mostly one is needed, and more only where a condition hides the objects
	return r.eachLinked(ctx, s.m, s.target.UUID, func(linked []string) (more bool, err error) {
		linked = slices.DeleteFunc(linked, func(source string) bool { return s.array.index(source) >= 0 })
		for ; len(linked) > 0; reads = min(2*reads, readAtOnce) {
			some := linked[:min(reads, len(linked))]
			linked = linked[len(some):]
			if isFull() {
				return false, nil
			}
			read, err := r.readTogether(ctx, s.m, slices.DeleteFunc(slices.Clone(some), s.isApplied))
			if err != nil {
				return false, err
			}
			for _, source := range some {
				if isFull() {
					return false, nil
				}
				if s.isApplied(source) { // and refused, before another made room
					s.put(source, false)
				} else if err := r.apply(ctx, s, source, false, read); err != nil {
					return false, err
				}
			}
		}
		return true, nil
	})
}

// eachLinked calls fn with the objects that the index has for a target, some at a time, until fn returns false. It
// reports whether fn did.
func (r *Reconciler) eachLinked(ctx context.Context, m *store.Mapping, target string,
	fn func(sources []string) (more bool, err error)) (stopped bool, err error) {
	all := r.set.Store(m.Source).Linked(ctx, m.Key, target, pageSize)
	for some, err := range store.InChunks(all, readAtOnce, 0) {
		if err != nil {
			return false, err
		}
		uuids := make([]string, len(some))
		for i, x := range some {
			uuids[i] = x.UUID
		}
		if more, err := fn(uuids); err != nil || !more {
			return !more, err
		}
	}
	return false, nil
}
