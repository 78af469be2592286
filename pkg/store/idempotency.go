package store

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"belfry/pkg/errs"
	"belfry/pkg/store/driver"
	"belfry/pkg/store/object"
)

// Once makes a write happen at most once, however often and in however many
// processes it is asked for. The record that the write leaves tells that it
// took place: an object holds the write's ID, a tombstone has its Revision.
//
// Whoever asks keeps the fields of Once in a safe place before the first
// attempt, and gives the same ones, or those of a later look, each time.
type Idempotency struct {
	// ID is what an object that was saved or updated holds from then on, in a
	// field that never leaves the server.
	ID string

	// Revision is that of the record after Save and Delete, to the digit: it is
	// above the revision that a look has found. So a write that was thought
	// lost and arrives late finds a record that is beyond it. 0 of Update.
	Revision uint64

	// Earlier are revisions that attempts at the same Delete were made with: a
	// tombstone with one of them is that deletion's.
	Earlier []uint64

	// Life is the Life of the object that a look has found: to be updated or
	// deleted is that one, and none that came after it. Nil of Save.
	Incarnation []byte

	// Answered reports whether nobody will ask for a write again in vain, so that an
	// object need not hold its ID any longer.
	Completed func(ctx context.Context, id string) (bool, error)
}

// What a write that may be asked for again reports besides what others do.
var (
	// ErrOvertaken is in a Conflict: others have written since the look, and
	// what there is does not tell whether the write took place before. It has
	// done nothing now.
	ErrSuperseded = errors.New("overtaken")

	// ErrBehind is in a Conflict: the object, still the same one, has got beyond
	// the write's revision. Look again, and take a higher one.
	ErrStaleRevision = errors.New("behind")
)

// Overtaken is the Conflict with ErrOvertaken about an object.
func Superseded(store, uuid string) error {
	return errs.Wrap(ErrSuperseded, errs.Conflict,
		"%s %q was deleted by others since the request was first made, which may have taken place before or not: look at it, and use another key", store, uuid)
}

const (
	// requestsField holds the requests that an object knows: {"<id>": <revision>}.
	requestsField = "_requests"

	// OnceKept is how long an object holds the ID of a write at least, unless
	// the write has been answered.
	IdempotencyRetention = 24 * time.Hour

	// manyRequests is when an object that holds more of them is relieved of
	// those that have been answered.
	pruneRequestsAt = 64
)

// save lets a new object hold the ID.
func (o *Idempotency) prepareSave(w *write) {
	w.exactRevision = o.Revision
	w.next[requestsField] = object.Object{o.ID: strconv.AppendUint(nil, o.Revision, 10)}.Encode()
}

// saved reports whether a record was left by the Save.
func (o *Idempotency) savedBy(record driver.Record, found bool) bool {
	return found && !record.Deleted && o.isRecordedIn(record.Body)
}

func (o *Idempotency) isRecordedIn(body []byte) bool {
	requests := object.Field(body, requestsField)
	return requests != nil && object.Field(requests, o.ID) != nil
}

// Deleted reports whether a tombstone of a revision was left by the Delete.
func (o *Idempotency) IsTombstone(revision uint64) bool {
	return revision != 0 && (revision == o.Revision || slices.Contains(o.Earlier, revision))
}

// look says what a record tells of an Update or a Delete: that it is done, that
// it can't be done, or nothing.
func (o *Idempotency) check(store, uuid string, record driver.Record, found bool) (done bool, err error) {
	switch {
	case found && record.Deleted && o.IsTombstone(record.Revision):
		return true, nil
	case !found || record.Deleted:
		return false, Superseded(store, uuid)
	case o.isRecordedIn(record.Body):
		return true, nil
	case !bytes.Equal(Incarnation(record.Body), o.Incarnation):
		return false, Superseded(store, uuid)
	case o.Revision != 0 && record.Revision >= o.Revision:
		return false, errs.Wrap(ErrStaleRevision, errs.Conflict, "others keep changing %s %q: try again", store, uuid)
	default:
		return false, nil
	}
}

// note adds the ID to those that an object holds, and lets old ones go.
func (o *Idempotency) record(ctx context.Context, now time.Time, next object.Object) error {
	requests := object.Object{}
	if held := next[requestsField]; held != nil {
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
	next[requestsField] = requests.Encode()
	return nil
}

// Life tells the lives of an object apart: it stays for as long as the object is
// there, and is another one when it is created anew.
func Incarnation(body []byte) []byte { return object.Field(body, created) }

// Trace is what a record tells of a write that may have taken place.
type WriteStatus struct {
	Stored             // as clients see it; without a body when there is no object
	Exists      bool   // there is an object
	Applied     bool   // which holds the ID
	Incarnation []byte // of the object
}

// Trace looks for what a write has left.
func (s *Store) WriteStatus(ctx context.Context, uuid, id string) (WriteStatus, error) {
	record, found, err := s.driver.Get(ctx, uuid)
	if err != nil || !found {
		return WriteStatus{Stored: Stored{UUID: uuid}}, err
	}
	if record.Deleted {
		return WriteStatus{Stored: Stored{UUID: uuid, Revision: record.Revision}}, nil
	}
	o := &Idempotency{ID: id}
	return WriteStatus{
		Stored: s.project(Call{Client: true}, record), Exists: true, Applied: o.isRecordedIn(record.Body), Incarnation: Incarnation(record.Body),
	}, nil
}
