// Package backup makes backups of a belfry that is running, and restores them.
//
// # Destination
//
// A destination is a storage of package binary: a folder or a bucket. Everything in a
// backup is stored as contents under their hashes, once, however many backups have it:
// a backup transfers what no other has. The manifest of a backup lists its parts. It is
// the document that is written last, so a backup that was interrupted does not exist,
// and the next one finds the parts that were transferred. It ends with removing what no
// manifest lists.
//
// # Order
//
// A backup reads, in this order:
//
//  1. the last sequence of each stream, and up to where each consumer has handled the log
//  2. the contents of binaries, for the first time
//  3. the stores: a checkpoint of each backend that has one, or else record by record
//  4. the streams
//  5. the contents of binaries that were added since
//
// Stores are read before the streams, so that the event of a write that is in the
// backup is in its record, or in the log: an event is cleared from its record after it
// was published. Positions are read before the stores, so that a consumer that is
// restored receives every event whose effect may be missing in the stores again.
//
// The log then has events of writes that are not in the backup: those made after the
// stores were read. They must not be delivered after a restore. A cascade would delete
// what is linked to an object whose deletion is undone. So a restore leaves out the
// events after the sequence of step 1 whose record has a lower revision, or does not
// exist. See phantom.
//
// # Restore
//
// A restore writes into empty backends alone, and leaves a marker in the data folder
// until it is complete, see package app. The log gets new sequences, and is another log
// to all who remember positions. Copies that differ, because the backends were
// not read at one moment, are repaired by a verification at the end.
package backup
