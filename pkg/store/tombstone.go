package store

import (
	"strconv"
	"strings"

	"belfry/pkg/store/driver"
)

// Tombstone is what is left of a deleted object until it is purged.
type Tombstone struct {
	Revision uint64 // of the deletion
	Owner    string // of the object, in a store with owners
}

// fenceMark begins the owner of a tombstone that a fence wrote, and separates what follows: the revision of the
// deletion, 0 if there was none, and the owner of the deleted object. No uuid has it.
const fenceMark = "\x01"

// fencedOwner is the owner that a fence writes into a tombstone, so that the deletion before it is still known.
func fencedOwner(read driver.Record) string {
	t := tombstoneOf(read)
	return fenceMark + strconv.FormatUint(t.Revision, 10) + fenceMark + t.Owner
}

// tombstoneOf returns the deletion that a record is of. A fence leaves the deletion that was before it, or none.
func tombstoneOf(r driver.Record) Tombstone {
	rest, fenced := strings.CutPrefix(r.Owner, fenceMark)
	if !fenced {
		return Tombstone{Revision: r.Revision, Owner: r.Owner}
	}
	deleted, owner, _ := strings.Cut(rest, fenceMark)
	revision, err := strconv.ParseUint(deleted, 10, 64)
	if err != nil {
		return Tombstone{Revision: r.Revision, Owner: r.Owner}
	}
	return Tombstone{Revision: revision, Owner: owner}
}
