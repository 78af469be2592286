// Package filestore implements driver.Backend in a folder, for a belfry that runs
// on a single machine. It uses Pebble, a log-structured merge tree.
//
// # Keys
//
// Every key begins with the four bytes of its store's number, big-endian, and a
// letter for its kind. Numbers are used instead of names because they are short
// and none is a prefix of another.
//
//	<store> o <uuid>                    the live record
//	<store> a <uuid> 0 <array> 0 <n>    a chunk of a large array of the record
//	<store> t <uuid>                    the tombstone: its revision, the owner of the object
//	<store> r <revision> <uuid>         the tombstones in the order of revisions, for Purge
//	<store> e <revision> <uuid>         a pending event
//	<store> i <index> <parts> <uuid>    an index entry; no value
//	<store> c                           the numbers of live records and pending events
//
// Store 0 is the catalog: "f" has the version of this layout, "s<name>" the
// number and the index definitions of a store. Indexes have numbers too, which
// are never reused: a changed index is a new one, and the entries of the old one
// are removed by a range deletion.
//
// Tombstones have their own keyspace, so that Scan and Query don't read deleted
// objects; a UUID has a record or a tombstone, never both. Events are ordered by
// revision, which for a single record is the order of its writes, and Clear
// computes their keys without reading.
//
// A part of an index key is escaped (0x00 becomes 0x00 0xff) and terminated by
// 0x00 0x01, so that keys sort like their lists of parts and no key is a prefix
// of another.
//
// # Values
//
// Values begin with a byte for their format. The value of a record has its
// revision, its index entries, and the body. The entries are stored rather than
// recomputed from the old body on update, for two reasons. An update need not
// decode a body that may have grown to a megabyte. And it removes the entries that
// exist even if the program that wrote them computed keys differently.
//
// Of a record with large arrays, the value is the head and what package chunk keeps of each array. Its format is
// another one, so that a version which does not know chunks reports the record instead of showing empty arrays. The
// chunks are changed in the batch of the head, and are read in the same snapshot as the head.
//
// # Writes
//
// A write is a single batch: record, index entries, events and counters. It holds
// the lock of its UUID while it reads and compares the record and applies the batch,
// but not during the fsync, so that writers share the fsync.
//
// An applied write is visible before it is synced, and a power failure would undo
// it. So every read waits until its data is synced, and so does a refused condition.
// A get waits for the writes of its own record, a page for all writes. Otherwise a
// copy of the record in another backend, or an event that was acknowledged because
// of it, could outlive it.
//
// Clear is not synced: after a crash its events are pending again.
//
// # Disk errors
//
// After a failed write or sync, memory and disk may disagree. The write is not
// acknowledged, and every further call reports errs.Unavailable until the
// process is restarted and Pebble recovers the folder from its log.
package filestore
