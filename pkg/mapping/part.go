package mapping

import (
	"bytes"
	"context"

	"belfry/pkg/object"
	"belfry/pkg/store"
	"belfry/pkg/store/driver"
)

// partRound is the state of a round on some entries of a large array, without the others. It takes the steps of a round
// on the whole array: the target, which the entries were read with, is read before the sources, it is written only if
// it is unchanged, and the sources are read again. So docs/mapping.md proves it, too.
//
// A round on the whole array does the work that needs the other entries: it removes the last ones, looks for objects
// without an entry, and checks all of them after a change of the owner.
type partRound struct {
	round
	read store.Part
}

// newPartRound begins a round on a part of an array; nil if it needs the whole one.
func newPartRound(m *store.Mapping, target string, read store.Part) *partRound {
	p := &partRound{round: *newRound(m, target, read.Body), read: read}
	if p.newOwner || len(p.stored.unconfirmed) > 0 {
		return nil
	}
	for uuid, value := range read.Entries.Values {
		p.array.set(uuid, value)
	}
	p.array.live, p.array.bytes = read.Entries.Count, read.Entries.Bytes
	p.wasFull = p.array.full(m)
	return p
}

// reconcilePart is reconcileOnce on a part of the array. If the round needs the whole array, it has written nothing.
func (r *Reconciler) reconcilePart(ctx context.Context, p *partRound, sources []string,
	fence bool) (done, wrote, whole bool, err error) {
	if err := r.applyAll(ctx, &p.round, sources, true); err != nil {
		return false, false, false, err
	}
	if p.m.Exceeds(p.array.live, p.array.bytes) || p.mark && !p.array.full(p.m) {
		return false, false, true, nil
	}
	fields, next := object.Object{}, overflow{marked: p.mark}
	if !next.equal(p.stored) {
		fields[OverflowField] = next.update(p.read.Body, p.m.Array)
	}
	changes := p.changes()
	if len(changes) == 0 && len(fields) == 0 && !fence {
		return true, false, false, nil
	}
	worker := store.NewWorker(r.set.Store(p.m.Target))
	if err := worker.ChangeEntries(ctx, p.read, p.m.Array, changes, fields); err != nil {
		return false, false, false, err
	}
	if len(changes) == 0 && len(fields) == 0 {
		return true, true, false, nil
	}
	done, err = r.confirmed(ctx, &p.round)
	return done, true, false, err
}

// changes are the entries that differ from those that were read, in the order in which they were computed.
func (p *partRound) changes() (changes []driver.Entry) {
	for _, source := range p.order {
		var value []byte
		if i := p.array.index(source); i >= 0 {
			value = p.array.entries[i]
		}
		if !bytes.Equal(value, p.read.Entries.Values[source]) {
			changes = append(changes, driver.Entry{UUID: source, Value: value})
		}
	}
	return changes
}
