// Package mongostore implements driver.Backend in a MongoDB database, for several
// belfry processes that share their objects. It uses MongoDB's own driver, and only
// features that every kind of server has, including a standalone: updates of single
// documents, indexes, strongly consistent reads.
//
// # Documents
//
// A store is a collection and a record is a document in it, so that everything that a
// write changes is changed atomically:
//
//	_id  the UUID
//	r    the revision, as 20 digits: as text, 64-bit revisions keep their order
//	b    the body, as bytes, or as a document if it has large arrays; missing in a tombstone
//	t    of a tombstone only: its revision again
//	o    of a tombstone only: the owner of the object; missing when it had none
//	k:…  the keys in an index: a text, or an array of them where there may be several
//	e    the pending events, each under the digits of its revision: i ID, s subject, d payload
//	n    the number of pending events; missing when there are none
//	p    the UUID again while events are pending
//
// The fields t and p exist for their sparse indexes: tombstones by revision, records
// with pending events by UUID.
//
// A body with large arrays is a document:
//
//	h  the body with these arrays empty, as bytes
//	m  what package chunk keeps of each array
//	c  the chunks: by the name of the array, escaped like that of a collection, then by number, as bytes
//
// It is in the same field, so that a version which does not know chunks finds the record and reports it, and replaces
// all of it whenever it sets the field.
//
// The collection belfry.layout has one document with the version of all this, so that a
// process of another version can tell that it can't read the database.
//
// # Writes
//
// A create is an insertion. When half of the connections are busy with insertions,
// further ones are batched in one command, but succeed or fail individually. If the
// UUID exists, the index of _id refuses it; the document is then read, and a tombstone
// with a lower revision is replaced by an update that applies to this tombstone only.
//
// Any other write is one update that sets fields, never a replacement: pending events
// stay without being read. Its filter is the precondition.
//
// Each event is a field of its own, so Clear can unset it regardless of concurrent
// writes, and does not change the revision. Usually all pending events of a record are
// cleared; one update does that for many records, with a filter that gives the number
// of pending events and their IDs for each. See outbox.go for the rest.
//
// # Chunks
//
// A change of entries is one update, too: of the head, of what is known of the arrays, and of some chunks. Its
// condition on the revision also holds for what it was computed from. No read of a document sees a part of it.
//
// GetEntries reads a record without its chunks, and then with some of them: which ones depends on their number. The
// handle remembers that number, and what was read until a write uses it. So a further change reads and writes once.
//
// A write of the whole body reads the chunks of a record first if the body has a large array, and writes those that
// differ. Another body replaces the field, without a read.
//
// Chunks take up to eight bytes more for each entry. A body that could be too large for a document then stays whole.
//
// # Keys
//
// A key is text whose order is that of its parts, see keys.go. In an index with one key
// per record the UUID follows the parts: the index alone then gives the order of the
// contract, and a page begins at a key. In an index with several keys per record
// MongoDB orders by the least element of an array; there the UUID is a second field of
// the index, which returns the entries of one key in order.
//
// The name of the field of a key, k:<name>:<parts>, with an m when there may be several,
// contains the definition of the index: a changed index is a new one. An index exists
// only when its keys are complete: Open fills a new index before creating it, and drops
// one that is no longer configured, because writes don't update its keys.
//
// # Consistency
//
// Writes are acknowledged by the journals of a majority; reads use the primary with
// majority read concern. An acknowledged write thus survives the loss of a minority, and
// no read returns data that could be rolled back. Only Clear does not wait for a
// majority: a cleared event that reappears is published again.
//
// The MongoDB driver repeats a write whose reply was lost with the same transaction
// number, which a replica set deduplicates. A standalone server does not: there the
// caller gets errs.Unavailable, as for any other unknown outcome.
package mongostore
