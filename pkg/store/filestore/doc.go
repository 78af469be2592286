// Package filestore keeps stores in a folder, for a belfry that runs on one
// machine. It is a driver.Backend on Pebble, a log-structured merge tree.
//
// # Keys
//
// Every key begins with the four bytes of its store's number, big-endian, and
// a letter that says what it is. Numbers, not names: they are short, and none
// is a prefix of another.
//
//	<store> o <uuid>                    the live record
//	<store> t <uuid>                    the tombstone: its revision
//	<store> r <revision> <uuid>         the tombstones in the order of revisions, for Purge
//	<store> e <revision> <uuid>         an event that waits
//	<store> i <index> <parts> <uuid>    an entry of an index; no value
//	<store> c                           how many live records and waiting events there are
//
// Store 0 is the catalogue: "f" holds the version of this layout, "s<name>"
// the number and the index definitions of a store. An index has a number too,
// never used twice: an index that changes is a new one, and the entries of the
// old are removed as a range.
//
// A tombstone lives in a keyspace of its own so that neither Scan nor Query
// ever wades through deleted objects; a uuid has a record or a tombstone,
// never both. Events are ordered by revision, which for one record is the
// order of its writes, and a Clear computes the key without reading anything.
//
// A part of an index key is escaped (0x00 becomes 0x00 0xff) and ended by
// 0x00 0x01, so that keys sort as their lists of parts do and no part runs
// into the next.
//
// # Values
//
// Values begin with a byte that gives their format. A record's holds its
// revision, the index entries that were made for it, and the body. Entries are
// kept rather than computed again from the old body on update: an update need
// not decode a body that may have grown to a megabyte, and removes what is
// really there even when the program that wrote it computed keys differently.
//
// # Writes
//
// A write is one batch: record, entries, event and counts. The lock of its
// uuid is held while the record is read, compared and the batch applied; the
// wait for the disk comes after, so that writers share one fsync. A reader may
// therefore see a write that is not yet acknowledged, and that a power cut
// would undo. Whatever is written because of it comes behind it in the same
// log, so it can't survive without it.
//
// Clear is not synced: after a crash its events wait again.
//
// # Disk errors
//
// After a disk has refused a write or a sync, what is in memory and what is on
// disk can't be known to agree: the write is not acknowledged, and everything
// from then on is refused with errs.Unavailable until the process is started
// again and the folder is recovered from its log.
package filestore
