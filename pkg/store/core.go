package store

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"belfry/pkg/errs"
	"belfry/pkg/store/access"
	"belfry/pkg/store/driver"
)

// core is what all parts of a store share: its name, its records, and the rules of its objects.
type core struct {
	name   string
	driver driver.Store
	rules  *access.Rules
	now    func() time.Time
	log    *slog.Logger
	peers  *peers
	links  *linker // nil: the store has no references
}

// find returns the record of an object. It returns NotFound for a missing or deleted one.
func (c *core) find(ctx context.Context, uuid string) (driver.Record, error) {
	record, found, err := c.driver.Get(ctx, uuid)
	return record, c.present(uuid, record, found, err)
}

// present returns the error of reading a record, or NotFound if no object exists.
func (c *core) present(uuid string, record driver.Record, found bool, err error) error {
	if err == nil && (!found || record.Deleted) {
		return c.missing(uuid)
	}
	return err
}

func (c *core) missing(uuid string) error {
	return errs.New(errs.NotFound, "%s has no object %q", c.name, uuid)
}

// maxAttempts is how often a write is attempted against writers in other
// processes.
var maxAttempts = 10 // fewer in tests that explore every interleaving

// ErrContended is in the Conflict of a write that lost every attempt to
// concurrent writes. Retrying can succeed.
var ErrContended = errors.New("contended")

func (c *core) contended(uuid string) error {
	return errs.Wrap(ErrContended, errs.Conflict, "concurrent writes keep changing %s %q: try again", c.name, uuid)
}

// writeGrace is how long a write continues after its caller has given up.
const writeGrace = 5 * time.Second

// put writes a record. It completes a write that has begun even if its caller gives up, as a client does that
// disconnects. Otherwise nobody would know whether the write was made. Its event would wait in the record for
// the next sweep, while later events of the object are published.
func (c *core) put(ctx context.Context, w driver.Write) error {
	if ctx.Done() == nil || ctx.Err() != nil {
		return c.driver.Put(ctx, w)
	}
	writing, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(writeGrace, cancel) })()
	return c.driver.Put(writing, w)
}

// nextRevision is the clock in microseconds, and always greater than the revision
// before: it never repeats for a uuid, not even after the record and its tombstone
// were removed, and revisions of different objects can be compared as times.
func nextRevision(now time.Time, before uint64) uint64 {
	return max(RevisionAt(now), before+1)
}

// RevisionAt returns the lowest revision that a write at a time can have.
func RevisionAt(t time.Time) uint64 { return uint64(t.UnixMicro()) }

// Tombstone is the remainder of a deleted object until it is purged.
type Tombstone struct {
	Revision uint64 // of the deletion
	Owner    string // of the object, in a store with owners
}

// fenceMark begins the owner of a tombstone that a fence wrote, and separates the fields after it: the revision of the
// deletion, or 0, and the owner of the deleted object. No uuid contains it.
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
