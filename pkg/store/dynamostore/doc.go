// Package dynamostore implements driver.Backend in DynamoDB, with a table for each
// store: for a belfry that runs on AWS, in one process or several. It uses no
// transactions, streams or scripts: data that must change atomically is in one item.
//
// # Items
//
// The key of a table is k, a string, and s, bytes. A table has these items:
//
//	k                      s              content
//	r.<uuid>               0              a record: object, revision, keys, pending events; or a tombstone
//	i.<index>.<shard>      position, tag  an index entry
//	c.<tag>.<blob>.<n>     0              a piece of data that does not fit in the item of a record (overflow)
//	a.<uuid>               array, n, tag  a chunk of a large array of the record, or a piece of one
//	n                      tag            a note: the overflow that a write is about to create
//	m                      0              the catalog: the indexes and their numbers
//
// The item of a record has its revision r, the mark d of a tombstone with the
// owner o of the object, and in v the keys and the body, compressed with zstd.
//
// Each pending event is an attribute named after its revision, so that one can be
// added or removed without changing the others; the set q lists those revisions.
// While there are any, p has a number from 0 to 7: DynamoDB's own index "pending"
// consists of the items that have a p. It is the only index that lags.
//
// # Tags
//
// Every attempt at a write has a unique tag: the time and random bytes. All items
// of the attempt outside of the record's item have this tag, and the record's item
// lists the tags that are valid for it. So the items that a crash leaves are
// recognized: readers ignore them, and they can be removed regardless of concurrent
// writes. Only their age matters: a young item may belong to a write in progress.
//
// # Entries
//
// DynamoDB's indexes have one key per item, lag, and are limited to 20. So belfry
// maintains its own: an entry is an item whose sort key is the position of the
// record in the index (escaped parts, then the UUID) and the tag. Every store has
// two additional indexes: the live records, for Scan, and the tombstones by
// revision, for Purge.
//
// Entries are distributed over eight partitions by the first part, so that an index
// is not a single hot partition. A query that gives the first part reads one
// partition; another reads all concurrently and merges.
//
// A write sends the record and its new entries concurrently, in one round trip,
// and returns when both are stored. A crash in between has one of two results:
//
//   - Entries exist without a matching record. Queries ignore them: a query reads
//     each record that it finds, strongly, and checks it.
//   - The record lacks entries. They are repaired, because the event of the write is
//     still pending. Pending writes the entries of a write before it returns its
//     event. Put writes those that it takes over from a write with a pending event.
//
// So an entry exists when the write is acknowledged, and before its event is
// published. A write without an event sends its entries first.
//
// Entries of keys that a record no longer has are removed in the background; a query
// removes those that are a day old.
//
// # Reads
//
// A few reads of records are in flight as requests of their own. The others wait for one of these to end, and then
// share a BatchGetItem: most of what a read costs is its request. Each read is strong, and begins after its call.
//
// # Creates
//
// Most creates find nothing, so a create first puts the item on the condition that it does
// not exist. The put can't replace a tombstone, whose pending events would be lost: DynamoDB
// returns the existing item. An update of a tombstone follows, which leaves its events. If a
// tombstone is known, the update is sent at once.
//
// # Overflow
//
// An item is limited to 400 KB. Pieces outside of the item store a value of more
// than 96 KiB, compressed, and events if the pending ones exceed 64 KiB. They are
// written before the record, and removed when it no longer refers to them. If the
// item is still too large, the write is repeated with everything in the overflow.
//
// A note is written before the pieces and removed last. Purge reads notes that are a
// day old, and removes the pieces that their records don't refer to.
//
// # Chunks
//
// An array of more than 64 KiB is kept in chunks, so that a change of one entry writes one of them; see package chunk.
// The body in the item of the record is then the head, where the array is empty. Before it, v lists the arrays, and for
// each chunk the tag of the write that created it.
//
// A chunk never changes. A write creates those that differ with its own tag, then changes the item under its
// condition, and then removes those that it replaced. So a reader of the item finds the chunks of this item or, if the
// record has changed since, misses one: then it reads the item again and the chunks that it lacks. A note lists the
// chunks that a write creates and replaces, as it does the pieces of the overflow.
//
// The chunks of a record are in one partition, so that reading the record is reading the item and one range. Entries
// are read by the item and their chunks. GetEntries remembers these if they are small, so that a change does not
// read them again.
//
// The value of a record with chunks begins with another letter than that of others. Versions that do not know chunks
// report such a record; they do not show empty arrays.
//
// # Lost replies
//
// A request whose reply is lost is sent again. If the first one was executed, the
// condition of the second fails, and the tag in the record shows why: DynamoDB returns the
// record with the failure; from a server that does not, it is read. If others
// have changed the record in the meantime so that this can't be determined, Put
// reports errs.Unavailable, never Mismatch.
//
// # Several processes
//
// Several processes may use the same tables if they are configured with the same
// indexes. The writes of a process that does not know an index are missing in it.
package dynamostore
