// Package driver defines the interfaces that a backend implements so that belfry can keep
// stores in it. It requires a single atomic write of one record, so a backend
// without transactions serves as well as one with them.
//
// A record holds an object, its revision, its index keys, and the events of its
// writes that have not been published yet (the outbox). All of these change in
// one atomic write: an acknowledged write and its event can't be separated.
//
// Package store implements what all backends share: merging, validation,
// policies, limits, revisions, key encoding. A driver compares revisions and
// bytes; it does not interpret objects.
//
// Every method is safe for concurrent use, honors its context, and returns
// errors of package errs: Mismatch where stated, Canceled when the context
// ended, Unavailable when the backend can't be reached or throttles, Internal
// otherwise.
package driver

import (
	"context"
	"time"
)

// Backend holds stores: a folder, a database.
type Backend interface {
	// Open returns a handle of the store with the given name. It creates missing folders
	// and tables, and waits until they are usable. Indexes may differ from those of an
	// earlier Open. All indexes of a store without records are complete.
	//
	// Without Spec.Online, no other handle of the store is in use, in any process, unless its indexes
	// are the same. Open builds the indexes that are incomplete, as BuildIndexes does,
	// and then does what Store.Release does.
	Open(ctx context.Context, spec Spec) (Store, error)

	// Stores returns the names of all stores that were ever opened, in any order. Nothing removes a store.
	Stores(ctx context.Context) ([]string, error)

	// Ping reports whether the backend is available.
	Ping(ctx context.Context) error

	// Close releases the backend. Its stores must be idle.
	Close() error
}

// Spec describes a store to open.
type Spec struct {
	Name    string
	Indexes []Index

	// Keys computes the index keys of a record's body, to build an index.
	// The caller of Put computes Write.Keys with the same function.
	Keys func(body []byte) []Key

	// Arrays are the fields of objects whose value is an array of objects with distinct uuids, their entries: a store
	// may keep them in chunks when they are large. Any other value of them is allowed, too. A record in chunks of which
	// an array is not among them is whole after its next write.
	Arrays []string

	// MoreChunks reports whether arrays may be put in chunks that are whole: all processes that share the store can
	// read chunks. nil: they may.
	MoreChunks func() bool

	// Online says that other handles of the store, with other indexes, may be in use during Open and after it, in this
	// process and in others. Open then builds nothing; see Indexes.
	Online bool
}

// Index finds records by key. All its keys have the same number of parts.
type Index struct {
	Name  string // unique in the store: letters, digits, '_', '-', '.', ','; changes when keys are computed differently
	Parts int    // number of parts of a key, 1 to 4
	Multi bool   // a record may have several keys; queries give all parts in Equal
}

// Build is the building of an index that is not complete.
type Build struct {
	Index string // its name

	// ID is another one each time when keys may be missing again: after a write of a handle that does not list the
	// index.
	ID string
}

// Key is an entry of a record in an index. Parts are byte strings of at most
// MaxPart bytes, compared bytewise and lexicographically; package store encodes
// values so that this order is the order of the values.
type Key struct {
	Index string
	Parts [][]byte
}

// MaxPart is the maximum length of a part of a key in bytes.
const MaxPart = 256

// Record is the content of a store for a UUID.
type Record struct {
	UUID     string
	Revision uint64 // never repeats for a UUID
	Body     []byte // the encoded object; nil for a tombstone. Must not be modified
	Deleted  bool   // a tombstone: the object was deleted at Revision
	Owner    string // of a tombstone: Write.Owner

	InChunks bool // the store keeps large arrays of the body in chunks
}

// Event is an event in the outbox of a record.
type Event struct {
	ID      string // unique; the bus deduplicates by it
	Subject string // on which it is published
	Payload []byte // the encoded envelope
}

// Write is an atomic write of one record.
type Write struct {
	UUID string

	// IfRevision is the precondition. 0: no live record has this UUID (no
	// record, or a tombstone with a revision below FirstRevision). Otherwise:
	// a live record exists at this revision.
	IfRevision uint64

	// Fresh says that UUID is a random one which was generated for this write, and which nobody else knows yet: no
	// record and no other write has it. A driver need not check that. IfRevision is 0.
	Fresh bool

	Revision uint64 // the new revision; FirstRevision must be greater than that of the existing record
	Body     []byte // the new body; nil writes a tombstone without keys
	Owner    string // of the deleted object, in a tombstone
	Keys     []Key  // all keys of the new body; duplicates count once

	// Array and Entries change some entries of an array that GetEntries has returned of the record at IfRevision. In
	// Body, this array and all others that the store keeps in chunks are empty. Array is "" in other writes.
	Array   string
	Entries []Entry

	// Event and ExtraEvents are added to the pending events of the record;
	// those that are pending already stay. When Event has no ID, the write has
	// no events at all: that is how a record is copied from another backend.
	Event       Event
	ExtraEvents []Event
}

// FirstRevision is the lowest revision that a write uses: each of its events
// has its own revision, in order, and the last is that of the record. A
// revision and a UUID thus identify one event.
func (w *Write) FirstRevision() uint64 { return w.Revision - uint64(len(w.ExtraEvents)) }

// Events returns the events of a write in the order of their revisions:
// Event first, then ExtraEvents.
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

// Query selects the records that have a key in an index which begins with the
// parts Equal and whose next part is in a range. A query of an index with
// Index.Multi gives all parts in Equal.
type Query struct {
	Index string
	Equal [][]byte // leading parts

	// From and To bound the part that follows Equal: it is not below From, and
	// it is below To. nil is unbounded. Both may be longer than MaxPart.
	From, To []byte

	Descending bool   // the exact reverse order, UUIDs included
	After      []byte // Page.Next of the previous page; nil for the first page
	Limit      int    // maximum number of records, at least 1
	MaxBytes   int    // of the bodies, if it is less than MaxPageBytes; 0: MaxPageBytes
}

// PageBytes is how many bytes the bodies of a page have at most.
func (q Query) PageBytes() int {
	if q.MaxBytes <= 0 {
		return MaxPageBytes
	}
	return min(q.MaxBytes, MaxPageBytes)
}

// Page is a part of a result. It has fewer records than its limit when the result
// ends, or when the bodies would have more bytes than allowed: only Next says whether
// there are more.
type Page struct {
	Records   []Record
	Positions [][]byte // of each record: After of a page that begins after it
	Next      []byte   // After of the next page; nil on the last page
	Keys      int      // keys that Intersecter.Intersect compared

	bytes int // of the bodies
}

// MaxPageBytes is the maximum size of the bodies of a page. A record whose
// body is larger is a page alone.
const MaxPageBytes = 4 << 20

// Pending is an event that has not been cleared from its record, with what
// Clear needs to find it.
type Pending struct {
	Event
	UUID     string // of its record
	Revision uint64 // of the event itself; see Write.FirstRevision
}

// Store holds the records of one store. Get, Query, Scan and Pending may return
// a write that is not durable yet; if that write is lost in a crash, so is
// every write made after it. Scan, Pending and Purge may lag like an index.
type Store interface {
	// Get returns the record of a UUID, tombstones included, or false. The
	// read is strongly consistent: it sees every Put that returned before it
	// began.
	Get(ctx context.Context, uuid string) (Record, bool, error)

	// Put makes a write, which is durable when Put returns nil. It reports
	// errs.Mismatch, having changed nothing, when the precondition fails or
	// FirstRevision is not greater than the revision of the existing record.
	// After any other error the write may or may not have been made.
	Put(ctx context.Context, w Write) error

	// Query returns live records in the order of their keys, then of their
	// UUIDs. An index may lag, or hold keys that a record no longer has: the
	// caller must check the record. It reports errs.Internal for a query that
	// Query.Check rejects. A position of a page is also After of the same query in
	// the other direction; the same holds of Scan and ScanBackward.
	Query(ctx context.Context, q Query) (Page, error)

	// Position returns Query.After for the records that come after a key of an index, which has
	// all its parts, and a UUID, in the direction of the query, whether or not a record has
	// them. Parts and UUID may be any bytes.
	Position(index string, key [][]byte, uuid string) []byte

	// Scan returns live records in the order of their UUIDs. after is Next of
	// the previous page, nil for the first.
	Scan(ctx context.Context, after []byte, limit int) (Page, error)

	// ScanBackward returns live records in the reverse order of their UUIDs. before is
	// Next of the previous page, nil for the first.
	ScanBackward(ctx context.Context, before []byte, limit int) (Page, error)

	// Pending returns pending events, those of one record in the order of
	// their revisions. after is next of the previous call, nil for the first;
	// next is nil at the end.
	Pending(ctx context.Context, after []byte, limit int) (events []Pending, next []byte, err error)

	// Clear removes published events from their records and leaves the
	// revisions as they are. Events that are not there are ignored. It need
	// not be durable: an event that reappears after a crash is published again
	// and deduplicated by its ID.
	Clear(ctx context.Context, events []Pending) error

	// Purge removes at most limit tombstones whose revision is below before
	// and that have no pending event, and returns the number removed.
	Purge(ctx context.Context, before uint64, limit int) (int, error)

	// Count returns the number of live records and of pending events. Both may
	// be estimates.
	Count(ctx context.Context) (records, pending int64, err error)

	Indexes
}

// Indexes is the part of a Store that adds and removes indexes while the store is in use.
//
// An index is complete if it has the keys of each record, else incomplete. Every Put writes the keys of all indexes of
// its handle.
//
//   - A new index is incomplete. An index also becomes incomplete for all handles once a handle that does not list it
//     writes: that write lacks its keys. A handle that lists it can still query it; keys are missing then.
//   - An incomplete index that a handle lists is being built: Reindex writes the keys of all records, and then Complete
//     makes it complete. The first Reindex must not begin before every handle that may write, in all processes, lists
//     the index.
//   - The store never trusts the previous entries of an incomplete index: Reindex removes or replaces them.
//   - After a crash, each index is either complete or incomplete.
type Indexes interface {
	// Building returns the indexes of the handle that are not complete, as of a moment during the call: in all
	// processes, the handles that wrote until then listed the others.
	Building(ctx context.Context) ([]Build, error)

	// Reindex writes the keys of live records by Spec.Keys, and leaves their revisions and events as they are. It
	// ignores missing records. Any process may make any call meanwhile: no write is lost, and the record has the keys
	// of the last write. The keys are durable when Reindex returns nil.
	Reindex(ctx context.Context, uuids []string) error

	// Complete makes indexes complete that Building has returned before the first Reindex. It reports errs.Mismatch
	// when one of the builds is over without being complete: then Building returns another one.
	Complete(ctx context.Context, builds []Build) error

	// Release removes the data of indexes that the handle does not list. No handle that lists them may be in use.
	Release(ctx context.Context) error
}

// ManyGetter is implemented by a store that reads several records in one request to its backend.
type ManyGetter interface {
	// GetMany returns the live records of distinct UUIDs, those that exist, in any order. Each read is as
	// consistent as that of Get.
	GetMany(ctx context.Context, uuids []string) ([]Record, error)
}

// Entry is an entry of an array: an object with a uuid.
type Entry struct {
	UUID  string
	Value []byte // the encoded object, with the UUID in its field uuid; nil in a Write: the entry is removed
}

// Entries are some entries of an array.
type Entries struct {
	Count, Bytes int               // of all entries; each has the bytes of a comma, too
	Values       map[string][]byte // by UUID: those that were asked for and exist
}

// EntryStore is implemented by a store that keeps large arrays in chunks: it reads and writes some entries of an array
// without the others. All other methods have records as they are without chunks.
type EntryStore interface {
	// GetEntries is Get for some entries of an array. entries is nil when the array is not in chunks, or should be
	// written as a whole: the record is then that of Get. Else the arrays in chunks are empty in the body of the
	// record.
	GetEntries(ctx context.Context, uuid, array string, uuids []string) (
		r Record, entries *Entries, found bool, err error)
}

// KeyCounter is implemented by a store that counts the records of a query without reading them.
type KeyCounter interface {
	// CountKeys returns the number of records in all pages of a query, as of one moment. If all is false, there are
	// more than limit. It ignores Limit, After and Descending of the query. A query without an Index matches all live
	// records.
	CountKeys(ctx context.Context, q Query, limit int) (n int, all bool, err error)
}

// KeyCondition requires that a record has a second key, besides the one by which a query finds it. The second key is in
// Index, begins with one of Equal, and ends with the parts after Query.Equal in the first key. So these records have
// the same order in both indexes. Index may have Index.Multi, with any parts.
type KeyCondition struct {
	Index string
	Equal [][][]byte // leading parts, each as many as the others have
}

// Intersecter is implemented by a store that intersects several indexes by their keys, without reading other records.
// In such a store, a seek to a key of an index costs little more than reading the next key.
type Intersecter interface {
	// Intersect is Query for the records that meet all conditions. It reads few others, and compares at most about two
	// keys for each key of the smallest index in the range. A page ends after about maxKeys comparisons, possibly
	// without a record: only Next says whether there may be more. Positions are those of Query.
	Intersect(ctx context.Context, q Query, conditions []KeyCondition, maxKeys int) (Page, error)

	// CountCommon returns how many records all pages of Intersect have, as of one moment; or, if all is false, how many
	// were found when maxKeys keys had been compared. Limit, After and Descending of the query do not matter.
	CountCommon(ctx context.Context, q Query, conditions []KeyCondition, maxKeys int) (n int, all bool, err error)
}

// IndexLagger is implemented by a store whose indexes lag behind its records.
type IndexLagger interface {
	// IndexLag is the time after a Put by which its keys are found.
	IndexLag() time.Duration
}

// Checkpointer is implemented by a backend of this process alone, whose files a backup
// copies.
type Checkpointer interface {
	// Checkpoint returns a folder with a copy of all stores as of one moment: with
	// every write that was acknowledged before the call. Its files don't change, and
	// a backend opens a copy of them as if its process had been killed at that
	// moment. release removes the folder; it is called once. errs.Unavailable while
	// another checkpoint exists.
	Checkpoint(ctx context.Context) (folder string, release func() error, err error)
}

// Backends that compare bytes store a key as its escaped parts, each with a
// terminator. In this form keys sort like their lists of parts, and no key is a
// prefix of another. The encoding is part of the on-disk format of these
// backends.

// AppendPart appends a part of a key without its terminator.
func AppendPart(dst, part []byte) []byte {
	for _, c := range part {
		dst = append(dst, c)
		if c == 0x00 {
			dst = append(dst, 0xff)
		}
	}
	return dst
}

// AppendPartEnd appends the terminator of a part.
func AppendPartEnd(dst []byte) []byte { return append(dst, 0x00, 0x01) }
