package store

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"belfry/pkg/errs"
	"belfry/pkg/object"
	"belfry/pkg/store/access"
	"belfry/pkg/store/driver"
)

// Idempotency makes a write take effect at most once, however often and in however
// many processes it is attempted. The record shows that the write was applied: an
// object holds the write's ID, a tombstone has its Revision.
//
// The caller stores these fields durably before the first attempt, and repeats the
// write with the same ones, or with those of a later WriteStatus.
type Idempotency struct {
	// ID is stored in the object by Save and Update, in a field that never leaves
	// the server.
	ID string

	// Revision is the exact revision of the record after Save and Delete. It is above
	// the one that WriteStatus returned, so a delayed attempt finds a record at a
	// higher revision and fails. 0 for Update.
	Revision uint64

	// Earlier are the revisions of earlier attempts at the same Delete: a tombstone
	// with one of them is that deletion's.
	Earlier []uint64

	// Incarnation is that of the object that WriteStatus returned. Update and Delete
	// apply to that one and to no later one. Nil for Save.
	Incarnation []byte

	// NewUUID says that the caller of Save did not choose the uuid.
	NewUUID bool

	// Completed reports whether the write with an ID is never repeated again, so
	// that the object can drop the ID.
	Completed func(ctx context.Context, id string) (bool, error)
}

// Errors of a write with Idempotency, besides those of every write.
var (
	// ErrSuperseded is in a Conflict: others have written since WriteStatus, and the
	// record does not show whether the write was applied before. This attempt has
	// not applied it.
	ErrSuperseded = errors.New("superseded")

	// ErrStaleRevision is in a Conflict: the object is the same incarnation, or does not
	// exist yet, but its record is already at or above Idempotency.Revision. Retry with a
	// higher revision.
	ErrStaleRevision = errors.New("stale revision")
)

// Superseded returns the Conflict with ErrSuperseded about an object.
func Superseded(store, uuid string) error {
	return errs.Wrap(ErrSuperseded, errs.Conflict,
		"%s %q was deleted after this request was first made, and the request may or may not have been executed: "+
			"read the object, and use a new key", store, uuid)
}

func errStale(store, uuid string) error {
	return errs.Wrap(ErrStaleRevision, errs.Conflict, "concurrent writes keep changing %s %q: try again", store, uuid)
}

const (
	// RequestsField holds the IDs of writes to an object: {"<id>": <revision>}.
	RequestsField = "_requests"

	// IdempotencyRetention is how long an object holds the ID of a write at least,
	// unless the write is completed.
	IdempotencyRetention = 24 * time.Hour

	// pruneRequestsAt is the number of IDs at which an object drops those of
	// completed writes.
	pruneRequestsAt = 64
)

// prepareSave adds the ID to a new object.
func (o *Idempotency) prepareSave(w *write) {
	w.exactRevision = o.Revision
	w.next[RequestsField] = object.Object{o.ID: strconv.AppendUint(nil, o.Revision, 10)}.Encode()
}

// savedBy reports whether a record is the result of the Save.
func (o *Idempotency) savedBy(record driver.Record, found bool) bool {
	return found && !record.Deleted && o.isRecordedIn(record.Body)
}

func (o *Idempotency) isRecordedIn(body []byte) bool {
	requests := object.Field(body, RequestsField)
	return requests != nil && object.Field(requests, o.ID) != nil
}

// IsTombstone reports whether the tombstone with a revision is the result of the
// Delete.
func (o *Idempotency) IsTombstone(revision uint64) bool {
	return revision != 0 && (revision == o.Revision || slices.Contains(o.Earlier, revision))
}

// check reports whether a record shows that an Update or a Delete was applied, or
// why it can no longer be applied.
func (o *Idempotency) check(store, uuid string, record driver.Record, found bool) (done bool, err error) {
	switch {
	case found && record.Deleted && o.IsTombstone(tombstoneOf(record).Revision):
		return true, nil
	case !found || record.Deleted:
		return false, Superseded(store, uuid)
	case o.isRecordedIn(record.Body):
		return true, nil
	case !bytes.Equal(Incarnation(record.Body), o.Incarnation):
		return false, Superseded(store, uuid)
	case o.Revision != 0 && record.Revision >= o.Revision:
		return false, errStale(store, uuid)
	default:
		return false, nil
	}
}

// record adds the ID to those that an object holds, and drops old ones.
func (o *Idempotency) record(ctx context.Context, now time.Time, next object.Object) error {
	requests := object.Object{}
	if held := next[RequestsField]; held != nil {
		var err error
		if requests, err = object.Decode(held); err != nil {
			return err
		}
	}
	for id, at := range requests {
		revision, err := strconv.ParseUint(string(at), 10, 64)
		if err != nil || revision < RevisionAt(now.Add(-IdempotencyRetention)) {
			delete(requests, id)
		}
	}
	if len(requests) >= pruneRequestsAt && o.Completed != nil {
		for id := range requests {
			answered, err := o.Completed(ctx, id)
			if err != nil {
				return err
			}
			if answered {
				delete(requests, id)
			}
		}
	}
	requests[o.ID] = strconv.AppendUint(nil, RevisionAt(now), 10)
	next[RequestsField] = requests.Encode()
	return nil
}

// Incarnation identifies the incarnation of an encoded object: it is constant until
// the object is deleted, and different when the uuid is created again.
func Incarnation(body []byte) []byte { return object.Field(body, access.Created) }

// WriteStatus is the evidence of a record for a write that may have been applied.
type WriteStatus struct {
	UUID        string
	Revision    uint64 // of the object or its tombstone; 0: none
	Deleted     uint64 // the revision of the deletion; 0: the object exists, or there is no trace of it
	Exists      bool   // the object exists
	Applied     bool   // and holds the ID
	Incarnation []byte // of the object

	record driver.Record
}
