package dynamostore

import (
	"context"
	"errors"
	"sync"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"belfry/pkg/errs"
	"belfry/pkg/store/driver"
)

// outcome is the outcome of an attempt at a write.
type outcome int

const (
	unknown outcome = iota // it may or may not have been made
	made
	refused // it was not made
	stale   // it was not made, because its snapshot is outdated
	full    // it was not made, because the item would have been too large
)

func errMismatch() error {
	return errs.New(errs.Mismatch, "the object was changed concurrently")
}

// Put implements driver.Store.
func (s *store) Put(ctx context.Context, w driver.Write) error {
	if err := s.checkUUID(ctx, w.UUID); err != nil {
		return err
	}
	if w.IfRevision != 0 && w.FirstRevision() <= w.IfRevision {
		return errMismatch()
	}
	if err := s.beforeWrite(ctx); err != nil {
		return err
	}
	for range maxRetries {
		result, err := s.try(ctx, &w)
		if result != stale {
			return err
		}
		s.snapshots.forget(w.UUID)
	}
	return s.b.unavailable(nil, "the object %s can't be written: it is being changed continuously, or chunks "+
		"of its arrays are missing", w.UUID)
}

func (s *store) try(ctx context.Context, w *driver.Write) (outcome, error) {
	base, err := s.current(ctx, w)
	if err != nil {
		return refused, err
	}
	for _, small := range []bool{false, true} {
		p, err := s.plan(ctx, w, base, small)
		if errors.Is(err, errStale) {
			return stale, nil
		}
		if err != nil {
			return refused, err
		}
		if result, err := s.execute(ctx, p); result != full {
			return result, err
		}
	}
	return refused, s.b.unavailable(nil, "the object %s has too many pending events to add another: "+
		"it can be written again when they have been published", w.UUID)
}

// current returns the snapshot of the record that a write replaces, nil for a create.
func (s *store) current(ctx context.Context, w *driver.Write) (*snapshot, error) {
	if w.IfRevision == 0 {
		return nil, nil
	}
	if t := s.snapshots.get(w.UUID, w.IfRevision); t != nil {
		return t, nil
	}
	r, err := s.readHead(ctx, w.UUID)
	if err != nil {
		return nil, err
	}
	if r == nil || r.deleted || r.revision != w.IfRevision {
		return nil, errMismatch()
	}
	return s.snapshotOf(r), nil
}

// execute makes one attempt: the overflow first, then the record and its entries
// concurrently. A write without an event has nothing from which missing entries
// could be repaired, so they are written first.
func (s *store) execute(ctx context.Context, p *plan) (outcome, error) {
	if err := s.writeOverflow(ctx, p); err != nil {
		return unknown, err
	}
	var entries sync.WaitGroup
	var entriesErr error
	entries.Go(func() { entriesErr = s.b.writeAll(ctx, s.table, entryWrites(p.w.UUID, p.put)) })
	if len(p.events) == 0 {
		if entries.Wait(); entriesErr != nil {
			return unknown, entriesErr
		}
	}
	result, replaced, err := s.writeRecord(ctx, p)
	entries.Wait()
	switch result {
	case made:
		if p.base != nil {
			replaced = p.base
		}
		s.b.cleaner.add(garbage{table: s.table, keys: p.obsoleteKeys(replaced), note: p.noteKey()})
		if entriesErr != nil {
			s.snapshots.forget(p.w.UUID)
			return result, entriesErr
		}
		s.rememberWrite(p)
	case refused, stale, full:
		s.b.cleaner.add(garbage{table: s.table, keys: p.rollbackKeys(), note: p.noteKey()})
	case unknown:
		s.snapshots.forget(p.w.UUID)
	}
	return result, err
}

// writeOverflow writes the note and then the overflow.
func (s *store) writeOverflow(ctx context.Context, p *plan) error {
	if p.note == nil {
		return nil
	}
	_, err := s.b.client.PutItem(ctx, &dynamodb.PutItemInput{TableName: &s.table, Item: p.note})
	if err != nil {
		return s.b.wrapError(ctx, err, s.table)
	}
	return s.b.writeAll(ctx, s.table, p.pieces)
}

// rememberWrite caches the snapshot of a successful write.
func (s *store) rememberWrite(p *plan) {
	tags := []tag{p.tag}
	if p.base != nil {
		for t := range p.base.unconfirmed {
			tags = append(tags, t)
		}
	}
	s.indexedWrites.add(tags...)
	t := &snapshot{uuid: p.w.UUID, revision: p.w.Revision, value: p.value, entries: p.entries,
		eventBytes: p.eventBytes()}
	t.value.data = nil
	s.snapshots.put(t)
}

// writeRecord makes one conditional write of the record's item. A request is sent again
// while its outcome is unknown, so the condition may fail because of the write itself:
// outcomeOf finds out. For a create it returns the snapshot of the tombstone that was
// replaced.
func (s *store) writeRecord(ctx context.Context, p *plan) (outcome, *snapshot, error) {
	insert := p.base == nil && !s.snapshots.has(p.w.UUID)
	open := false // a request with an unknown outcome may have been executed
	for attempt := 1; ; attempt++ {
		old, err := p.send(ctx, s.b, s.table, insert)
		switch {
		case err == nil:
			return made, s.replaced(old), nil
		case conditionFailed(err) && insert && mayBeReplaced(p, conflictingItem(err)):
			insert, attempt = false, 0
			continue
		case conditionFailed(err):
			result, err := s.checkOutcome(ctx, p, conflictingItem(err), open)
			return result, nil, err
		case tooLarge(err):
			return full, nil, nil
		}
		open = open || !isCertainlyUnwritten(err)
		last := attempt == maxAttempts || ctx.Err() != nil || !s.b.retryer.IsErrorRetryable(err)
		if !last && waitToRetry(ctx, attempt) == nil {
			continue
		}
		result := refused
		if open {
			result = unknown
		}
		return result, nil, s.b.wrapError(ctx, err, s.table)
	}
}

// mayBeReplaced reports whether an item that prevented an insertion may be a tombstone
// that a create replaces. A server that does not return the item leaves that to the
// condition of the update.
func mayBeReplaced(p *plan, there item) bool {
	r, err := decodeRecord(there)
	return err != nil || r.deleted && r.revision < p.w.FirstRevision()
}

// replaced returns the snapshot of the tombstone that a create replaced. One that
// can't be decoded is not an error: its entry becomes an orphan.
func (s *store) replaced(old item) *snapshot {
	if len(old) == 0 {
		return nil
	}
	r, err := decodeRecord(old)
	if err != nil || r.value.isOverflow() || r.setValue(r.value.data) != nil {
		return nil
	}
	return s.snapshotOf(r)
}

// checkOutcome finds out why a condition failed, from the item that was there if the
// server returned it. open means that an earlier request of the same write may have been
// executed.
func (s *store) checkOutcome(ctx context.Context, p *plan, there item, open bool) (outcome, error) {
	if p.base == nil && !open {
		return refused, errMismatch()
	}
	r, err := s.itemOf(ctx, p.w.UUID, there)
	switch {
	case err != nil && open:
		return unknown, err
	case err != nil:
		return refused, err
	case r != nil && p.wrote(r):
		return made, nil
	case r != nil && p.base != nil && !r.deleted && r.revision == p.w.IfRevision:
		return stale, nil
	case open && (r == nil || r.revision >= p.w.Revision):
		return unknown, s.b.unavailable(errors.New("the reply was lost, and the object was changed afterwards"),
			"it is unknown whether the object %s was written: read it before retrying", p.w.UUID)
	default:
		return refused, errMismatch()
	}
}

// itemOf returns the record whose item a server returned with a failed condition. Not every
// server returns it; then the item is read.
func (s *records) itemOf(ctx context.Context, uuid string, there item) (*record, error) {
	if there == nil {
		return s.readItem(ctx, uuid)
	}
	return s.decode(there)
}

// wrote reports whether the record was written by the plan.
func (p *plan) wrote(r *record) bool {
	event, pending := r.events[p.w.FirstRevision()]
	return r.value.tag == p.tag || pending && event.tag == p.tag
}
