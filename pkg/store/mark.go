package store

import (
	"context"
	"errors"
	"strconv"
	"time"

	"belfry/pkg/errs"
	"belfry/pkg/object"
	"belfry/pkg/store/driver"
)

// DeletingField is the internal field that marks an object while a deletion looks for objects that name it. The
// references of these objects restrict the deletion.
const DeletingField = "_deleting"

// mark is the value of DeletingField. While an object has the same mark, no write that newly names it is acknowledged.
type mark struct {
	revision uint64 // of the record when it was marked, by which marks differ; 0: none
	made     time.Time
}

// markLife is for how long a mark has writes refused that newly name the object. A deletion that a crash ended leaves
// its mark: the next such write removes it, or the next deletion.
const markLife = 10 * time.Second

// markOf returns the mark of an encoded object; the zero mark if it is not marked.
func markOf(body []byte) mark {
	value := object.Field(body, DeletingField)
	if value == nil {
		return mark{}
	}
	revision, _ := strconv.ParseUint(string(object.Field(value, "revision")), 10, 64)
	at, _ := strconv.ParseInt(string(object.Field(value, "at")), 10, 64)
	return mark{revision: revision, made: time.UnixMicro(at)}
}

func (m mark) encode() []byte {
	return object.Object{
		"revision": strconv.AppendUint(nil, m.revision, 10), "at": strconv.AppendInt(nil, m.made.UnixMicro(), 10),
	}.Encode()
}

// isFresh reports whether the deletion that made the mark may still be in progress.
func (m mark) isFresh(now time.Time) bool {
	age := now.Sub(m.made)
	return m.revision != 0 && age < markLife && age > -markLife
}

// setMark writes a record with another mark; the zero mark removes it. Nothing else changes but the revision, which is
// the next one, and there is no event. It returns the record after the write. Errors: Mismatch; Unavailable.
func (w *writer) setMark(ctx context.Context, record driver.Record, m mark) (driver.Record, error) {
	o, err := object.Decode(record.Body)
	if err != nil {
		return driver.Record{}, err
	}
	delete(o, DeletingField)
	if m.revision != 0 {
		o[DeletingField] = m.encode()
	}
	next := driver.Record{UUID: record.UUID, Revision: record.Revision + 1, Body: o.Encode()}
	err = w.put(ctx, driver.Write{
		UUID: next.UUID, IfRevision: record.Revision, Revision: next.Revision, Body: next.Body,
		Keys: w.indexing.keys(next.Body),
	})
	return next, err
}

// unmark removes a mark, if an object still has it.
func (w *writer) unmark(ctx context.Context, uuid string, m mark) error {
	for range maxAttempts {
		record, found, err := w.driver.Get(ctx, uuid)
		if err != nil || !found || record.Deleted || markOf(record.Body).revision != m.revision {
			return err
		}
		if _, err := w.setMark(ctx, record, mark{}); !errors.Is(err, errs.Mismatch) {
			return err
		}
	}
	return w.contended(uuid)
}

// hold removes the mark of an object, by any deletion. That deletion then re-reads the objects that name it, and finds
// the one that was written before. It reports whether the object exists; an object that never existed is no reason to
// undo a write, unless it is required.
func (w *writer) hold(ctx context.Context, uuid string, required bool) (bool, error) {
	for range maxAttempts {
		record, found, err := w.driver.Get(ctx, uuid)
		if err != nil {
			return false, err
		}
		if !found || record.Deleted {
			return !required && !isGone(record, found), nil
		}
		if markOf(record.Body).revision == 0 {
			return true, nil
		}
		if _, err := w.setMark(ctx, record, mark{}); err == nil || !errors.Is(err, errs.Mismatch) {
			return err == nil, err
		}
	}
	return false, w.contended(uuid)
}
