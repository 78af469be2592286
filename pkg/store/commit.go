package store

import (
	"context"

	"belfry/pkg/event"
	"belfry/pkg/object"
	"belfry/pkg/store/driver"
	"belfry/pkg/store/policy"
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
	followed      bool          // next has its copies
	undoes        bool          // it takes another write back
	minRevision   uint64        // the new revision is greater than this one too
	extraEvents   []ExtraEvent
	array         string // of which entries change; base, stored and next have it empty
	entries       []driver.Entry
	exactRevision uint64 // not 0: the new revision is this one, which is above that of base
}

// ExtraEvent makes an extra event of a write, which is stored in the same record
// and is as durable as the store's own. It receives a copy of the envelope of the
// write, with the object after the write, and changes what differs. It may be about an object of another store.
type ExtraEvent func(e *event.Envelope)

// writer writes objects.
type writer struct {
	*core
	reader       *reader // what callers receive of what they write
	checks       *checks
	events       *events
	interception *interception
	indexing     *indexing
	copier       *copier
	claims       *Claims          // nil without unique fields
	aggregates   *Aggregates      // nil without aggregates
	apart        []string         // arrays whose entries workers may write without the rest of an object
	computed     *policy.Computed // fields that each write computes; nil: none
	locker       Locker
	outbox       Outbox // nil: none
	noEvents     bool
	beforeDelete func(ctx context.Context, o Stored) error // nil: nothing
}

// commit claims unique values, writes the record atomically with its events and passes
// these to the outbox. It reports Mismatch when the record is not as it was read, and
// Taken when another object has a value that must be unique.
func (w *writer) commit(ctx context.Context, call Call, made *write) (driver.Record, error) {
	now := w.now()
	before := max(made.base.Revision, made.minRevision) + uint64(len(made.extraEvents))
	out := driver.Write{
		UUID: made.uuid, IfRevision: made.base.Revision, Fresh: made.fresh, Revision: nextRevision(now, before),
	}
	if made.exactRevision != 0 {
		out.Revision = made.exactRevision
	}
	if made.next != nil {
		w.keepReleased(call, made)
		if !made.followed {
			w.follow(ctx, made)
		}
		if !made.computed {
			w.compute(ctx, made.uuid, made.next)
		}
		made.next.Canonicalize() // also what a worker writes
		out.Body, out.Array, out.Entries = made.next.Encode(), made.array, made.entries
		out.Keys = w.indexing.keys(out.Body)
	} else if owner := w.rules.Owner(); owner != "" {
		out.Owner = ownerOf(owner, made.uuid, made.base.Body)
	}
	claimed, err := w.claims.reserve(ctx, made.base, &out)
	if err != nil {
		return driver.Record{}, err
	}
	if w.noEvents {
		return w.commitWithoutEvents(ctx, claimed, out)
	}
	e := w.events.envelope(call, made, now, out.Revision, out.Body)
	out.Event = w.events.pending(e)
	for _, change := range made.extraEvents {
		extra := *e
		extra.ID, extra.Previous = object.NewUUID(), nil
		change(&extra)
		out.ExtraEvents = append(out.ExtraEvents, w.events.pending(&extra))
	}
	err = w.put(ctx, out)
	linkedIn(ctx).forget(named{w.name, made.uuid})
	w.claims.finish(ctx, claimed, out.Revision, err)
	if err != nil {
		return driver.Record{}, err
	}
	if w.outbox != nil {
		for _, p := range out.Events() {
			w.outbox.Committed(w.name, p)
		}
	}
	addCause(ctx, Cause{ID: e.ID, Event: made.name, Store: w.name, Origin: call.Origin})
	return driver.Record{UUID: made.uuid, Revision: out.Revision, Body: out.Body}, nil
}

// commitWithoutEvents writes a record without an event.
func (w *writer) commitWithoutEvents(
	ctx context.Context, claimed *reservation, out driver.Write,
) (driver.Record, error) {
	err := w.put(ctx, out)
	w.claims.finish(ctx, claimed, out.Revision, err)
	if err != nil {
		return driver.Record{}, err
	}
	return driver.Record{UUID: out.UUID, Revision: out.Revision, Body: out.Body}, nil
}
