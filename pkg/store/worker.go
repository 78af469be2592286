package store

import (
	"context"
	"errors"

	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/object"
	"belfry/pkg/store/driver"
)

// Worker writes the fields of a store's objects that belfry itself maintains. Its
// writes are not checked: no policy, no schema, no size limit, no interceptor.
// Code that acts for a client uses Store.
type Worker struct{ writer *writer }

// NewWorker returns the worker's side of a store.
func NewWorker(s *Store) Worker { return Worker{s.writer} }

// CompareAndSet replaces fields of an object, arrays and internal fields
// included, if the object is still at the revision of base. A nil value removes
// the field.
//
// Errors: Mismatch when the object has another revision; Unavailable.
func (w Worker) CompareAndSet(ctx context.Context, base Stored, fields object.Object) (Stored, error) {
	stored, err := base.Object()
	if err != nil {
		return Stored{}, err
	}
	return w.replace(ctx, base, &write{stored: stored, next: withFields(stored, fields)})
}

// replace makes a write of an object if it is still at the revision of base.
func (w Worker) replace(ctx context.Context, base Stored, change *write) (Stored, error) {
	s := w.writer
	unlock, err := s.locker.Lock(ctx, base.UUID)
	if err != nil {
		return Stored{}, err
	}
	defer unlock()
	change.uuid, change.name = base.UUID, event.StoreUpdated
	change.base = driver.Record{UUID: base.UUID, Revision: base.Revision, Body: base.Body}
	written, err := s.commit(ctx, CallOf(ctx), change)
	if err != nil {
		return Stored{}, err
	}
	return s.reader.project(CallOf(ctx), written), nil
}

// Reindex writes an object as it was read, with all keys that this release computes for the indexes: a release before
// may have computed fewer for the same object. Nothing else changes but the revision, and there is no event.
//
// Errors: Mismatch when the object has another revision; Unavailable.
func (w Worker) Reindex(ctx context.Context, o Stored) error {
	s := w.writer
	unlock, err := s.locker.Lock(ctx, o.UUID)
	if err != nil {
		return err
	}
	defer unlock()
	return s.put(ctx, driver.Write{
		UUID: o.UUID, IfRevision: o.Revision, Revision: nextRevision(s.now(), o.Revision),
		Body: o.Body, Keys: s.indexing.keys(o.Body),
	})
}

// withFields returns a copy of an object in which fields replace its own; a nil
// value removes the field.
func withFields(o, fields object.Object) object.Object {
	next := o.Clone()
	for name, value := range fields {
		if value == nil {
			delete(next, name)
		} else {
			next[name] = value
		}
	}
	return next
}

// copyEventBatch is how many events one write of a copy takes: backends have
// limits, and many events may be pending after the bus was unavailable.
const copyEventBatch = 100

// CopyRecord writes a record of another backend unchanged: body, revision, and
// its pending events in the order of their revisions. It reports whether it
// wrote: a record that is already at this revision stays. Of a record at a lower
// revision, the events up to that revision have been copied before. Conflict when
// the record here is newer.
func (w Worker) CopyRecord(ctx context.Context, r driver.Record, pending []driver.Pending) (bool, error) {
	s := w.writer
	var here driver.Record
	for attempt := 0; attempt < maxAttempts; {
		next := s.nextCopy(r, pending, here)
		err := s.driver.Put(ctx, next)
		switch {
		case err == nil && next.Revision == r.Revision:
			return true, nil
		case err == nil:
			here = driver.Record{Revision: next.Revision, Body: next.Body, Deleted: r.Deleted, Owner: r.Owner}
			continue
		case !errors.Is(err, errs.Mismatch):
			return false, err
		}
		attempt++
		if here, _, err = s.driver.Get(ctx, r.UUID); err != nil {
			return false, err
		}
		if here.Revision == r.Revision {
			return false, nil
		}
		if here.Revision > r.Revision {
			return false, errs.New(errs.Conflict, "%s already has %q at a newer revision: something else writes to it",
				s.name, r.UUID)
		}
	}
	return false, s.contended(r.UUID)
}

// nextCopy is the next write of a copy onto the record here. With more than
// copyEventBatch events it ends at the revision of one of them, and another
// write has to follow.
func (w *writer) nextCopy(r driver.Record, pending []driver.Pending, here driver.Record) driver.Write {
	next := driver.Write{UUID: r.UUID, Revision: r.Revision, Body: r.Body, Owner: r.Owner}
	if r.Body != nil {
		next.Keys = w.indexing.keys(r.Body)
	}
	if here.Revision > 0 && !here.Deleted {
		next.IfRevision = here.Revision
	}
	// Revisions of events are distinct and at most the record's, so those above
	// the record here keep theirs.
	for len(pending) > 0 && pending[0].Revision <= here.Revision {
		pending = pending[1:]
	}
	if len(pending) > copyEventBatch {
		pending = pending[:copyEventBatch]
		next.Revision = pending[copyEventBatch-1].Revision
	}
	for i, e := range pending {
		if i == 0 {
			next.Event = e.Event
		} else {
			next.ExtraEvents = append(next.ExtraEvents, e.Event)
		}
	}
	return next
}

// GetMany returns objects by their distinct uuids, those that exist, in one request to the backend. It returns false
// where the backend has no such request. Each read is as strong as that of Get.
func (w Worker) GetMany(ctx context.Context, uuids []string) (found map[string]Stored, ok bool, err error) {
	many, ok := w.writer.driver.(driver.ManyGetter)
	if !ok {
		return nil, false, nil
	}
	records, err := many.GetMany(ctx, uuids)
	if err != nil {
		return nil, true, err
	}
	found = make(map[string]Stored, len(records))
	for _, r := range records {
		found[r.UUID] = w.writer.reader.project(CallOf(ctx), r)
	}
	return found, true, nil
}
