package store

import (
	"context"
	"time"

	"belfry/pkg/event"
	"belfry/pkg/store/driver"
	"belfry/pkg/store/object"
)

// write is one change on its way to the driver.
type write struct {
	uuid          string
	name          event.Name
	base          driver.Record // what the change was computed from; zero for a new object
	stored        object.Object // base decoded; nil for a new object and a deletion
	next          object.Object // nil for a deletion
	minRevision   uint64        // the new revision is greater than this too
	extraEvents   []ExtraEvent
	exactRevision uint64 // not 0: the new revision is this one, which is above that of base
}

// Also makes a further event of a write, which waits in the same record and is
// as durable as the store's own. It is given the envelope that every event of
// the write has, with the object after the write, and changes what differs.
type ExtraEvent func(e *event.Envelope)

// commit writes the record with its event in one act and hands the event on.
// It reports Mismatch when the record is not as it was read.
func (s *Store) commit(ctx context.Context, call Call, w *write) (Stored, error) {
	now := s.Now()
	before := max(w.base.Revision, w.minRevision) + uint64(len(w.extraEvents))
	out := driver.Write{UUID: w.uuid, IfRevision: w.base.Revision, Revision: nextRevision(now, before)}
	if w.exactRevision != 0 {
		out.Revision = w.exactRevision
	}
	if w.next != nil {
		out.Body = w.next.Encode()
		out.Keys = s.keys(w.uuid, out.Body)
	}
	if s.NoEvents {
		return s.commitWithoutEvents(ctx, call, out)
	}
	e := s.envelope(call, w, now, out.Revision, out.Body)
	out.Event = s.pendingEvent(e)
	for _, also := range w.extraEvents {
		further := *e
		further.ID, further.Previous = object.NewUUID(), nil
		also(&further)
		out.ExtraEvents = append(out.ExtraEvents, s.pendingEvent(&further))
	}
	if err := s.driver.Put(ctx, out); err != nil {
		return Stored{}, err
	}
	if s.Outbox != nil {
		for _, p := range out.Events() {
			s.Outbox.Committed(s.Name, p)
		}
	}
	collect(ctx, Cause{ID: e.ID, Event: w.name, Store: s.Name, Origin: call.Origin})
	return s.project(call, driver.Record{UUID: w.uuid, Revision: out.Revision, Body: out.Body}), nil
}

// commitSilently writes a record that tells nobody.
func (s *Store) commitWithoutEvents(ctx context.Context, call Call, out driver.Write) (Stored, error) {
	if err := s.driver.Put(ctx, out); err != nil {
		return Stored{}, err
	}
	return s.project(call, driver.Record{UUID: out.UUID, Revision: out.Revision, Body: out.Body}), nil
}

// waiting is an event as it waits in its record. It is encoded before anything
// else happens to the envelope.
func (s *Store) pendingEvent(e *event.Envelope) driver.Event {
	return driver.Event{ID: e.ID, Subject: event.Subject(e.Event, s.Name, e.UUID), Payload: s.encode(e)}
}

// revision is the clock in microseconds, and always greater than the revision
// before: it never repeats for a uuid, not even when a record and its tombstone
// are gone, and revisions of different objects can be compared as times.
func nextRevision(now time.Time, before uint64) uint64 {
	return max(RevisionAt(now), before+1)
}

// RevisionAt is the lowest revision that a write at a time has.
func RevisionAt(t time.Time) uint64 { return uint64(t.UnixMicro()) }

const timeFormat = "2006-01-02T15:04:05.000000Z"

// timestamp is a time as JSON.
func timestamp(t time.Time) []byte {
	return t.UTC().AppendFormat(nil, `"`+timeFormat+`"`)
}
