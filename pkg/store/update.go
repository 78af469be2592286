package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/object"
	"belfry/pkg/store/access"
	"belfry/pkg/store/driver"
	"belfry/pkg/store/policy"
)

// UpdateOptions say how Update merges.
type UpdateOptions struct {
	UUID string // "": the object's own field uuid
	If   uint64 // not 0: only while the object is at this revision

	// Patch merges by RFC 7396: nested objects are merged and null removes.
	// Otherwise each field given replaces the stored one, and those absent stay.
	Patch bool
}

// update: see Store.Update.
func (w *writer) update(ctx context.Context, o object.Object, opts UpdateOptions) (Stored, error) {
	call := CallOf(ctx)
	uuid := opts.UUID
	if uuid == "" {
		uuid, _ = o.Text("uuid")
	}
	if err := object.CheckUUID(uuid); err != nil {
		return Stored{}, err
	}
	given := w.rules.Settable(call.caller(), o)
	written, err := w.rewrite(ctx, uuid, func(record driver.Record) (*write, error) {
		stored, next, err := w.prepareUpdate(ctx, call, record, given, opts)
		if err != nil {
			return nil, err
		}
		if next, err = w.interception.write(ctx, call, "update", uuid, next, record.Body); err != nil {
			return nil, err
		}
		next[access.Updated] = w.updatedAfter(record)
		if call.Idempotency != nil {
			if err := call.Idempotency.record(ctx, w.now(), next); err != nil {
				return nil, err
			}
		}
		change := &write{uuid: uuid, name: event.StoreUpdated, base: record, stored: stored, next: next}
		w.events.announceWrite(call, event.StoreUpdate, change)
		return change, nil
	})
	if err != nil {
		return Stored{}, err
	}
	return w.reader.reply(ctx, written), nil
}

// prepareUpdate authorizes and validates an update of a record, and returns the object before and after it.
func (w *writer) prepareUpdate(
	ctx context.Context, call Call, record driver.Record, given object.Object, opts UpdateOptions,
) (stored, next object.Object, err error) {
	if stored, err = object.Decode(record.Body); err != nil {
		return nil, nil, err
	}
	input := access.WithoutBinaries(given, stored)
	defer func() { err = w.reader.hide(ctx, call, policy.Update, record, input, err) }()
	if err = w.checks.checkInput(input); err != nil {
		return nil, nil, err
	}
	if next, err = mergeFields(stored, input, opts.Patch); err != nil {
		return nil, nil, err
	}
	if call.Client {
		w.indexing.keepNames(stored, next)
	}
	if call.Client {
		after := w.links.after(record.UUID, stored, next)
		if err := w.rules.AllowWrite(ctx, call.caller(), policy.Update, record.Body, input, after); err != nil {
			return nil, nil, err
		}
		if err := w.rules.AllowFields(ctx, call.caller(), policy.Update, stored, input, next, after); err != nil {
			return nil, nil, err
		}
	}
	if err := checkRevision(record, opts.If); err != nil {
		return nil, nil, err
	}
	if err := w.checks.check(ctx, stored, next); err != nil {
		return nil, nil, w.rules.ConcealUpdate(ctx, call.caller(), err, stored, input, opts.Patch)
	}
	return stored, next, nil
}

// checkUpdate: see Store.CheckUpdate.
func (w *writer) checkUpdate(ctx context.Context, o object.Object, opts UpdateOptions) error {
	call := CallOf(ctx)
	record, err := w.find(ctx, opts.UUID)
	if err != nil {
		return err
	}
	_, _, err = w.prepareUpdate(ctx, call, record, w.rules.Settable(call.caller(), o), opts)
	return err
}

// checkDelete: see Store.CheckDelete.
func (w *writer) checkDelete(ctx context.Context, uuid string) error {
	call := CallOf(ctx)
	record, err := w.find(ctx, uuid)
	if err != nil {
		return err
	}
	return w.mayDelete(ctx, call, record)
}

// mayDelete returns the error of a client that may not delete a record.
func (w *writer) mayDelete(ctx context.Context, call Call, record driver.Record) error {
	if !call.Client {
		return nil
	}
	denial := w.rules.Allow(ctx, call.caller(), policy.Delete, record.Body, nil)
	return w.reader.hide(ctx, call, policy.Delete, record, nil, denial)
}

func mergeFields(stored, input object.Object, patch bool) (object.Object, error) {
	if patch {
		return object.MergePatch(stored, input)
	}
	return stored.Merge(input), nil
}

// delete: see Store.Delete.
func (w *writer) delete(ctx context.Context, uuid string, ifRevision uint64, also []ExtraEvent) error {
	if r := w.restricting(CallOf(ctx)); r != nil {
		return r.delete(ctx, uuid, ifRevision, also)
	}
	return w.remove(ctx, uuid, ifRevision, also, nil)
}

// remove deletes an object. If references restrict that, marked is its record with the mark of the deletion.
func (w *writer) remove(
	ctx context.Context, uuid string, ifRevision uint64, also []ExtraEvent, marked *driver.Record,
) error {
	call := CallOf(ctx)
	_, err := w.rewrite(ctx, uuid, func(record driver.Record) (*write, error) {
		expected := ifRevision
		if marked != nil {
			var err error
			if expected, err = checkMark(record, *marked, ifRevision); err != nil {
				return nil, err
			}
		}
		if err := w.mayDelete(ctx, call, record); err != nil {
			return nil, err
		}
		if err := checkRevision(record, expected); err != nil {
			return nil, err
		}
		if _, err := w.interception.write(ctx, call, "delete", uuid, nil, record.Body); err != nil {
			return nil, err
		}
		if w.beforeDelete != nil && call.Client {
			if err := w.beforeDelete(ctx, toStored(record)); err != nil {
				return nil, err
			}
		}
		change := &write{uuid: uuid, name: event.StoreDeleted, base: record, extraEvents: also}
		if call.Idempotency != nil {
			change.exactRevision = call.Idempotency.Revision
		}
		w.events.announceWrite(call, event.StoreDelete, change)
		return change, nil
	})
	return err
}

// checkRevision returns Mismatch unless a record has the revision that a caller expects; 0: any. The policy is asked
// first: a Mismatch reveals the revision.
func checkRevision(record driver.Record, expected uint64) error {
	if expected == 0 || record.Revision == expected {
		return nil
	}
	onlyWorkers := onlyWorkersSince(record, expected)
	since := "somebody has changed it since: read it again"
	if onlyWorkers {
		since = "only belfry's workers have written it since, so the write can be repeated with this revision"
	}
	return &errs.Error{
		Kind: errs.Mismatch, At: &errs.Revision{Now: record.Revision, OnlyWorkers: onlyWorkers},
		Message: fmt.Sprintf("the object is at revision %d, not %d; %s", record.Revision, expected, since),
	}
}

// updatedAfter returns the time of an update of a record. It is later than each revision before, and at most the
// revision of the update, even if the clock was set back: so the time says whether a client has written since a
// revision.
func (w *writer) updatedAfter(record driver.Record) []byte {
	return object.TimeValue(time.UnixMicro(int64(nextRevision(w.now(), record.Revision))))
}

// onlyWorkersSince reports whether nobody but workers has written an object since a revision.
func onlyWorkersSince(record driver.Record, revision uint64) bool {
	return revision < record.Revision && clientRevision(record) <= revision
}

// OnlyWorkersSince reports whether nobody but workers has written an object since it was at a revision.
func OnlyWorkersSince(o Stored, revision uint64) bool {
	return onlyWorkersSince(driver.Record{Revision: o.Revision, Body: o.Body}, revision)
}

// clientRevision returns a revision that no write of a client is above: workers leave the time of the update.
func clientRevision(record driver.Record) uint64 {
	text, _ := object.Text(object.Field(record.Body, access.Updated))
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return record.Revision
	}
	return RevisionAt(t)
}

// rewrite reads an object, asks change what to write, and writes it if the
// record is still as read; otherwise it starts over. When change returns nil,
// nothing is written. It returns the record after the write.
func (w *writer) rewrite(
	ctx context.Context, uuid string, change func(driver.Record) (*write, error),
) (driver.Record, error) {
	unlock, err := w.locker.Lock(ctx, uuid)
	if err != nil {
		return driver.Record{}, err
	}
	defer unlock()
	for range maxAttempts {
		record, found, err := w.driver.Get(ctx, uuid)
		if err != nil {
			return driver.Record{}, err
		}
		if once := CallOf(ctx).Idempotency; once != nil {
			done, err := once.check(w.name, uuid, record, found)
			if err == nil && done {
				err = w.confirmApplied(ctx, record)
			}
			if done || err != nil {
				return record, err
			}
		}
		if !found || record.Deleted {
			return driver.Record{}, w.missing(uuid)
		}
		made, err := change(record)
		if err != nil {
			return driver.Record{}, err
		}
		if made == nil {
			return record, nil
		}
		written, err := w.commit(ctx, CallOf(ctx), made)
		if err == nil {
			return written, w.confirm(ctx, made, written)
		}
		if !errors.Is(err, errs.Mismatch) {
			return written, err
		}
	}
	return driver.Record{}, w.contended(uuid)
}
