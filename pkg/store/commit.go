package store

import (
	"context"
	"time"

	"belfry/pkg/event"
	"belfry/pkg/object"
	"belfry/pkg/store/driver"
)

// write is one change to be committed.
type write struct {
	uuid          string
	fresh         bool // uuid was generated for this write, and nobody else knows it
	name          event.Name
	base          driver.Record // what the change was computed from; zero for a new object
	stored        object.Object // base decoded; nil for a new object and a deletion
	next          object.Object // nil for a deletion
	computed      bool          // next has its computed fields
	minRevision   uint64        // the new revision is greater than this one too
	extraEvents   []ExtraEvent
	exactRevision uint64 // not 0: the new revision is this one, which is above that of base
}

// ExtraEvent makes an extra event of a write, which is stored in the same record
// and is as durable as the store's own. It receives a copy of the envelope of the
// write, with the object after the write, and changes what differs. It may be about an object of another store.
type ExtraEvent func(e *event.Envelope)

// commit claims unique values, writes the record atomically with its events and passes
// these to the outbox. It reports Mismatch when the record is not as it was read, and
// Taken when another object has a value that must be unique.
func (s *Store) commit(ctx context.Context, call Call, w *write) (driver.Record, error) {
	now := s.opts.Now()
	before := max(w.base.Revision, w.minRevision) + uint64(len(w.extraEvents))
	out := driver.Write{UUID: w.uuid, IfRevision: w.base.Revision, Fresh: w.fresh, Revision: nextRevision(now, before)}
	if w.exactRevision != 0 {
		out.Revision = w.exactRevision
	}
	if w.next != nil {
		if !w.computed {
			s.compute(ctx, w.uuid, w.next)
		}
		w.next.Canonicalize() // also what a worker writes
		out.Body = w.next.Encode()
		out.Keys = s.keys(out.Body)
	} else if owner := s.rules.Owner(); owner != "" {
		out.Owner = ownerOf(owner, w.uuid, w.base.Body)
	}
	claimed, err := s.claim(ctx, w.base, &out)
	if err != nil {
		return driver.Record{}, err
	}
	if s.opts.NoEvents {
		return s.commitWithoutEvents(ctx, claimed, out)
	}
	e := s.envelope(call, w, now, out.Revision, out.Body)
	out.Event = s.pendingEvent(e)
	for _, change := range w.extraEvents {
		extra := *e
		extra.ID, extra.Previous = object.NewUUID(), nil
		change(&extra)
		out.ExtraEvents = append(out.ExtraEvents, s.pendingEvent(&extra))
	}
	err = s.put(ctx, out)
	s.settle(ctx, claimed, out.Revision, err)
	if err != nil {
		return driver.Record{}, err
	}
	if s.opts.Outbox != nil {
		for _, p := range out.Events() {
			s.opts.Outbox.Committed(s.opts.Name, p)
		}
	}
	collect(ctx, Cause{ID: e.ID, Event: w.name, Store: s.opts.Name, Origin: call.Origin})
	return driver.Record{UUID: w.uuid, Revision: out.Revision, Body: out.Body}, nil
}

// commitWithoutEvents writes a record without an event.
func (s *Store) commitWithoutEvents(ctx context.Context, claimed *pledge, out driver.Write) (driver.Record, error) {
	err := s.put(ctx, out)
	s.settle(ctx, claimed, out.Revision, err)
	if err != nil {
		return driver.Record{}, err
	}
	return driver.Record{UUID: out.UUID, Revision: out.Revision, Body: out.Body}, nil
}

// writeGrace is how long a write continues after its caller has given up.
const writeGrace = 5 * time.Second

// put writes a record. A write that has begun is completed when its caller gives up, as a client does that
// disconnects: ended half way, nobody would know whether it was made, and if it was, its event would
// wait in the record for the next sweep, while later events of the object are published.
func (s *Store) put(ctx context.Context, w driver.Write) error {
	if ctx.Done() == nil || ctx.Err() != nil {
		return s.driver.Put(ctx, w)
	}
	writing, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(writeGrace, cancel) })()
	return s.driver.Put(writing, w)
}

// pendingEvent encodes an event for its record.
func (s *Store) pendingEvent(e *event.Envelope) driver.Event {
	return driver.Event{ID: e.ID, Subject: event.Subject(e.Event, e.Store, e.UUID), Payload: s.encode(e)}
}

// nextRevision is the clock in microseconds, and always greater than the revision
// before: it never repeats for a uuid, not even after the record and its tombstone
// were removed, and revisions of different objects can be compared as times.
func nextRevision(now time.Time, before uint64) uint64 {
	return max(RevisionAt(now), before+1)
}

// RevisionAt returns the lowest revision that a write at a time can have.
func RevisionAt(t time.Time) uint64 { return uint64(t.UnixMicro()) }
