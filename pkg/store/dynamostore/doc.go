// Package dynamostore keeps stores in DynamoDB, a table for each: for a belfry
// that runs on AWS, in one process or several. It is a driver.Backend that
// asks of DynamoDB no transaction, no stream and no script: what must change
// together is one item.
//
// # Items
//
// A table's key is k, a string, and s, bytes. These items are in it:
//
//	k                      s            what
//	r.<uuid>               0            a record: object, revision, keys, waiting events; or a tombstone
//	i.<index>.<shard>      place, tag   an entry of an index
//	c.<tag>.<blob>.<n>     0            a piece of what a record's item has no room for
//	n                      tag          a note: what a write is about to lay outside
//	m                      0            the catalogue: the indexes and their numbers
//
// A record's item has its revision r, the mark d of a tombstone, and in v the
// keys and the body, packed with zstd. Each waiting event is an attribute of
// its own, named after its revision, so that one is added or taken out without
// touching another; the set q lists those revisions. While there are some, p
// holds a number from 0 to 7: the index "pending" of DynamoDB's own consists of
// the items that have a p. That is the only index that lags.
//
// # Tags
//
// Every attempt at a write has a tag that no other ever has: the time and
// random bytes. What it leaves outside of the record's item bears this tag, and
// the item says which tags are its. So whatever a crash leaves behind is known
// for what it is: it is not looked at, and can be removed without care for
// what others do meanwhile. Only its age counts: something young may belong to
// a write that is under way.
//
// # Entries
//
// DynamoDB's indexes have one key for an item, lag, and are 20 at most. So
// belfry makes its own: an entry is an item whose sort key is the record's
// place (escaped parts, then the uuid) and the tag. It is spread over eight
// partitions by the first part, that one key may not heat one partition alone
// with all writes of the store: a query that names the first part reads one of
// them, another reads all at once and merges. Two indexes are in every
// store: that of the live records, for Scan, and that of the tombstones by
// revision, for Purge.
//
// A write sends the record and its new entries at the same time, so it takes
// one round trip, and returns when both are there. If the process dies in
// between, the record may lack entries, or there may be entries without a
// record that has them. The latter count for nothing: a query reads each
// record that it finds, strongly, and believes the record. The former are
// repaired, for the event of the write still waits: Pending writes the entries
// of a write before it hands out its event, and a Put those that it takes
// over from a write whose event waits. So an entry is there when the write
// is acknowledged, and before anyone hears of it. (A write that tells nobody
// sends its entries first.) Entries of keys that a
// record no longer has are removed after the write, behind the caller's back;
// a query removes those that were left a day ago.
//
// # What an item has no room for
//
// An item has 400 KB. A value of more than 96 KiB, packed, and events when
// those that wait have more than 64 KiB, lie outside of it, in pieces that are
// written before the record is and removed after it refers to them no more.
// Before all of this a note is written, and it is removed last; Purge looks at
// notes that are a day old and removes what their records do not refer to. If
// the item gets too large all the same, the write is made once more with
// everything outside.
//
// # Lost replies
//
// A request whose reply is lost is sent again. Its condition then fails if the
// first was carried out, and the record tells by its tag. If others have
// changed it since so that it can't tell, Put reports errs.Unavailable, never
// Mismatch.
//
// # Several processes
//
// They may use the same tables at once, if their configurations have the same
// indexes. One that does not know a new index leaves its writes out of it.
package dynamostore
