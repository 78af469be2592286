// Package mongostore keeps stores in a MongoDB database, for belfrys that share
// their objects or whose machines come and go. It is a driver.Backend on
// MongoDB's own driver, and asks of the server what every kind of it offers,
// the standalone too: changes of one document, indexes, strong reads.
//
// # Documents
//
// A store is a collection, a record is one document in it, so that whatever a
// write changes it changes in one act:
//
//	_id  the uuid
//	r    the revision, as 20 digits: as text revisions of 64 bits keep their order
//	b    the body, as bytes; a tombstone has none
//	t    of a tombstone alone: its revision again
//	k:…  the keys in an index: one text, or an array of them where there may be several
//	e    the events that wait, each under the digits of its revision: i id, s subject, d payload
//	n    how many events wait; missing when none does
//	p    the uuid again while an event waits
//
// The fields t and p are there for their indexes, which hold nothing of the
// records that lack them: tombstones by revision, records with events by uuid.
//
// # Writes
//
// A creation is an insertion. Those that come while others take half of the
// connections go together in one command, each for itself. Where something has
// the uuid the index of _id refuses it; what is there is read, and a lower
// tombstone becomes a record by an update that holds for this tombstone alone.
//
// Any other write is one update that sets fields, never a replacement: events
// that wait stay without being read. Its filter is the precondition.
//
// An event is an element of its own, so Clear unsets it whatever else happens to
// the record, and touches no revision. Most often all that waits is cleared; one
// update does it for many records, whose filter names for each how many events
// wait and their ids. See outbox.go for the rest.
//
// # Keys
//
// A key is text whose order is that of its parts, see keys.go. In an index that
// allows a record one key, the uuid stands behind the parts: the index alone
// then gives the contract's order, and a page begins at a key. In an index with
// several keys for a record MongoDB orders by an array's least element, in the
// range or not; there the uuid is a second field of the index. That answers a
// query for one key in order, which is all that belfry asks; for a range the
// server unwinds and sorts the keys, and the records are read in a second turn.
//
// The name of a key's field, k:<name>:<parts>, with an m where there may be
// several, says how its index is defined: one defined otherwise is another one.
// An index exists once its keys are complete: Open fills a new one before it is
// made, and drops one that is no longer wanted, since writes don't keep its keys
// up.
//
// # Consistency
//
// Writes are acknowledged by a majority, from its journals; reads ask the
// primary for what a majority has. So a write that was acknowledged outlives
// the loss of a minority, and nothing is read that could be undone. Clear alone
// waits for no majority: a cleared event that comes back is published again.
//
// A write whose reply is lost is repeated by the driver under the same number,
// which a replica set recognises. A standalone server can't: there the caller is
// told that the backend is away, as for everything else whose outcome isn't
// known.
package mongostore
