// Package backup makes backups of a belfry that is running, and restores them.
//
// # Destination
//
// A destination is a storage of package binary: a folder or a bucket. Each part of a
// backup is a content under its hash, which all backups share: a backup transfers only
// new parts. The manifest of a backup lists its parts. It is the document that is written
// last, so an interrupted backup does not exist, and the next one finds the parts that
// were transferred. A backup ends with the removal of contents that no manifest lists.
//
// # Order
//
// A backup reads, in this order:
//
//	step 1   the last sequence of each stream, and the position up to which each consumer has handled the log
//	step 2   the contents of binaries, for the first time
//	step 3   the stores: a checkpoint of each backend that has one, or else record by record
//	step 4   the streams
//	step 5   the contents of binaries that were added since
//
// Stores are read before the streams. An event is cleared from its record after it was
// published, so the event of each write in the backup is in its record, or in the log.
// Positions are read before the stores, so that a restored consumer receives again every
// event whose effect may be missing in the stores.
//
// The log then also has events of later writes, made after the stores were read. They
// must not be delivered after a restore: a cascade would delete the objects that are
// linked to an object whose deletion is undone. So a restore leaves out the events after
// the sequence of step 1 whose record has a lower revision, or does not exist. See
// phantom.
//
// # Restore
//
// A restore writes only into empty backends, and leaves a marker in the data folder until
// it is complete, see package app. The log gets new sequences: for all clients with
// positions it is another log. Copies can differ, because the backends were read at
// different moments. A verification at the end repairs them.
package backup
