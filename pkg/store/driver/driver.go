// Package driver is what a backend provides so that belfry can keep stores in
// it. It asks for one atomic act only, on one record, so that a backend
// without transactions serves as well as one with them.
//
// A record holds an object, its revision, the keys under which it is found,
// and the events that its writes caused and that are not yet on the bus. All
// of these change in one act: that is what makes an acknowledged write and its
// event inseparable.
//
// Package store holds what every backend shares: merging, validation,
// policies, limits, revisions, key encoding. A driver compares revisions and
// bytes, and understands nothing of an object.
//
// Every method is safe for concurrent use, honours its context, and reports
// errors of package errs: Mismatch where stated, Unavailable when the backend
// is away or throttles, Internal otherwise.
package driver

import (
	"context"
	"time"
)

// Backend is a place that holds stores: a folder, a database.
type Backend interface {
	// Open returns the store of this name, making what it lacks (folders,
	// tables, indexes) and waiting until that serves. Indexes may differ from
	// those of an earlier Open: an index that is new is filled from the
	// records before Open returns; one that is gone may be dropped.
	// A store is opened once at a time; again when the earlier one is idle.
	Open(ctx context.Context, spec Spec) (Store, error)

	// Ping reports whether the backend answers.
	Ping(ctx context.Context) error

	// Close ends all use. The stores of the backend must be idle.
	Close() error
}

// Spec says which store to open.
type Spec struct {
	Name    string
	Indexes []Index

	// Keys computes the index keys of a record's body, for filling an index
	// that is new. It is the function whose results Put is given.
	Keys func(uuid string, body []byte) []Key
}

// Index is a way to find records. Every key of it has the same number of parts.
type Index struct {
	Name  string // unique in the store: letters, digits, '_', '-', '.', ','; another one when its keys are computed otherwise
	Parts int    // how many parts its keys have, 1 to 4
	Multi bool   // a record may have several keys in it
}

// Key is one entry of a record in an index. Parts are byte strings of at most
// MaxPart bytes, compared bytewise and lexicographically; package store encodes
// values so that this order is the values' order.
type Key struct {
	Index string
	Parts [][]byte
}

// MaxPart is the most bytes that one part of a key has.
const MaxPart = 256

// Record is what a store holds for a uuid.
type Record struct {
	UUID     string
	Revision uint64 // never repeats for a uuid
	Body     []byte // the encoded object; nil for a tombstone. Not to be modified
	Deleted  bool   // a tombstone: the object was deleted at Revision
}

// Event is an event that waits in its record to be published.
type Event struct {
	ID      string // unique; what the bus deduplicates by
	Subject string // where the bus keeps it
	Payload []byte // the encoded envelope
}

// Write is one atomic change of one record.
type Write struct {
	UUID string

	// IfRevision is the precondition. 0: no live object has this uuid (nothing at
	// all, or a tombstone of any revision below Revision). Otherwise: the
	// record, live, is at this revision.
	IfRevision uint64

	Revision uint64 // the new revision; First is greater than that of whatever is there
	Body     []byte // the new body; nil leaves a tombstone without keys
	Keys     []Key  // every key of the new body; one given twice counts once

	// Event, and what else the write is to tell in the same act, are added to
	// the events that wait; those that wait already stay. An Event without an
	// ID, and then nothing else, tells nobody: that is how a record is copied
	// from another backend.
	Event       Event
	ExtraEvents []Event
}

// FirstRevision is the lowest revision that a write takes: each of its events has one
// of its own, in their order, and the last is that of the record. So a
// revision and a uuid name one event.
func (w *Write) FirstRevision() uint64 { return w.Revision - uint64(len(w.ExtraEvents)) }

// Events are the events of a write as they wait.
func (w *Write) Events() []Pending {
	if w.Event.ID == "" {
		return nil
	}
	events := make([]Pending, 1+len(w.ExtraEvents))
	for i := range events {
		events[i] = Pending{Event: w.Event, UUID: w.UUID, Revision: w.FirstRevision() + uint64(i)}
		if i > 0 {
			events[i].Event = w.ExtraEvents[i-1]
		}
	}
	return events
}

// Query asks for the records whose key in an index begins with the parts Equal
// and whose next part lies in a range.
type Query struct {
	Index string
	Equal [][]byte // leading parts

	// From and To bound the part behind Equal: it is not below From, and it
	// is not above To or begins with To. nil is open.
	From, To []byte

	Descending bool   // the exact reverse, uuids included
	After      []byte // the Page.Next of the page before; nil for the first
	Limit      int    // at most so many records, at least 1
}

// Page is a part of an answer.
type Page struct {
	Records []Record
	Next    []byte // where the next page begins; nil when this is the last
}

// Pending is an event that waits, with what Clear needs to find it.
type Pending struct {
	Event
	UUID     string // of its record
	Revision uint64 // its own; see Write.First
}

// Store holds the records of one store. What Get, Query, Scan and Pending see
// may be a write that is not yet durable; whatever is written because of it is
// then undone with it. Scan, Pending and Purge may lag like an index.
type Store interface {
	// Get returns the record of a uuid, tombstones included, and false when
	// there is none. The read is strong: it sees every Put that returned
	// before it began.
	Get(ctx context.Context, uuid string) (Record, bool, error)

	// Put makes one write, durable when it returns nil. It reports
	// errs.Mismatch, having changed nothing, when the precondition does not
	// hold or First is not greater than the record's revision. After another error
	// the write may or may not have been made.
	Put(ctx context.Context, w Write) error

	// Query returns live records in the order of their keys, then of their
	// uuids. An index may lag behind or hold keys that a record no longer has:
	// whoever asks looks at the record. A record with several keys in the
	// range may appear more than once.
	Query(ctx context.Context, q Query) (Page, error)

	// Scan returns live records in the order of their uuids. after is the Next
	// of the page before.
	Scan(ctx context.Context, after []byte, limit int) (Page, error)

	// Pending returns events that wait, those of one record in the order of
	// their revisions. after is the next of the call before; next is nil at
	// the end.
	Pending(ctx context.Context, after []byte, limit int) (events []Pending, next []byte, err error)

	// Clear takes events that have been published out of their records,
	// leaving the revisions as they are. Events that are not there are
	// ignored. It need not be durable: an event that comes back is published
	// again, and deduplicated by its ID.
	Clear(ctx context.Context, events []Pending) error

	// Purge removes tombstones whose revision is below before and that hold
	// no waiting event, at most limit of them, and reports how many it
	// removed.
	Purge(ctx context.Context, before uint64, limit int) (int, error)

	// Count returns how many live records there are, and how many events
	// wait. It may be an estimate.
	Count(ctx context.Context) (records, pending int64, err error)
}

// IndexLagger is implemented by a store whose indexes lag behind its records.
type IndexLagger interface {
	// IndexLag is how long after a Put its keys are sure to be found.
	IndexLag() time.Duration
}
