package store

import (
	"context"
	"errors"

	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/object"
	"belfry/pkg/store/access"
	"belfry/pkg/store/driver"
	"belfry/pkg/store/policy"
)

// create takes the steps of Store.Save, and returns the record.
func (w *writer) create(ctx context.Context, o object.Object, uuid string, also []ExtraEvent) (driver.Record, error) {
	call := CallOf(ctx)
	uuid, chosen, err := uuidOf(o, uuid)
	if err != nil {
		return driver.Record{}, err
	}
	fresh := !chosen && !w.interception.applies(call)
	if call.Idempotency != nil && call.Idempotency.NewUUID {
		chosen = false
	}
	next, err := w.prepareCreate(ctx, call, o, uuid, chosen)
	if err != nil {
		return driver.Record{}, err
	}
	if next, err = w.interception.write(ctx, call, "save", uuid, next, nil); err != nil {
		return driver.Record{}, err
	}
	stamp := object.TimeValue(w.now())
	next[access.Created], next[access.Updated] = stamp, stamp
	w.aggregates.setEmpty(next)
	made := write{uuid: uuid, fresh: fresh, name: event.StoreSaved, next: next, extraEvents: also}
	if call.Idempotency != nil {
		call.Idempotency.prepareSave(&made)
	}
	w.events.announceWrite(call, event.StoreSave, &made)

	unlock, err := w.locker.Lock(ctx, uuid)
	if err != nil {
		return driver.Record{}, err
	}
	defer unlock()
	// Nothing is read first: the driver's precondition says whether the uuid is
	// free. Only after a failure is the record read: an object that exists may have
	// had, at an earlier attempt, a value that is another one's by now.
	for range maxAttempts {
		written, failed := w.commit(ctx, call, &made)
		if failed == nil {
			return written, w.confirm(ctx, &made, written)
		}
		taken := errors.Is(failed, errs.Taken)
		if !taken && !errors.Is(failed, errs.Mismatch) {
			return written, failed
		}
		record, found, err := w.driver.Get(ctx, uuid)
		if err != nil {
			return driver.Record{}, err
		}
		if call.Idempotency != nil && call.Idempotency.savedBy(record, found) {
			return record, w.confirmApplied(ctx, record)
		}
		if found && !record.Deleted {
			return driver.Record{}, errs.New(errs.Exists, "%s already has an object %q", w.name, uuid)
		}
		if taken { // by another object, and this is no repetition
			return driver.Record{}, failed
		}
		if call.Idempotency != nil && found && tombstoneOf(record).Revision < call.Idempotency.Revision {
			return driver.Record{}, errStale(w.name, uuid) // a fence, which no write came before
		}
		if call.Idempotency != nil {
			return driver.Record{}, Superseded(w.name, uuid)
		}
		// A tombstone with a revision ahead of this machine's clock.
		made.minRevision = record.Revision
	}
	return driver.Record{}, w.contended(uuid)
}

// checkCreate: see Store.Check.
func (w *writer) checkCreate(ctx context.Context, o object.Object, uuid string) error {
	call := CallOf(ctx)
	uuid, chosen, err := uuidOf(o, uuid)
	if err != nil {
		return err
	}
	next, err := w.prepareCreate(ctx, call, o, uuid, chosen)
	if err != nil {
		return err
	}
	return w.claims.checkFree(ctx, next.Encode(), uuid)
}

// prepareCreate authorizes and validates a new object, and returns what of it is
// stored. chosen says that the caller chose the uuid.
func (w *writer) prepareCreate(
	ctx context.Context, call Call, o object.Object, uuid string, chosen bool,
) (object.Object, error) {
	input := w.rules.Settable(call.caller(), o)
	if err := w.checks.checkInput(input); err != nil {
		return nil, err
	}
	if call.Client {
		w.rules.SetOwner(call.caller(), input)
	}
	next := w.checks.withDefaults(input)
	if call.Client {
		after := w.links.after(uuid, nil, next)
		if err := w.rules.AllowWrite(ctx, call.caller(), policy.Create, nil, next, after); err != nil {
			return nil, err
		}
		// A default is no field that the client writes.
		if err := w.rules.AllowFields(ctx, call.caller(), policy.Create, nil, input, next, after); err != nil {
			return nil, err
		}
		if chosen && !call.Trusted && !w.rules.ClientsChooseUUIDs() {
			return nil, &errs.Error{
				Kind:    errs.Invalid,
				Message: "the server chooses the uuids of new objects of " + w.name + ": leave the uuid out",
				Fields:  []errs.Field{{Pointer: "/uuid", Message: "must be left out"}},
			}
		}
	}
	next["uuid"] = object.AppendString(nil, uuid)
	return next, w.checks.check(ctx, nil, next)
}

// uuidOf returns the uuid of a new object, and whether the caller chose it: the one given, else the object's own,
// else a new one.
func uuidOf(o object.Object, given string) (uuid string, chosen bool, err error) {
	if uuid = given; uuid == "" {
		value, ok := o["uuid"]
		if !ok {
			return object.NewUUID(), false, nil
		}
		text, isText := object.Text(value)
		if !isText {
			return "", true, &errs.Error{Kind: errs.Invalid, Message: "the uuid must be a string",
				Fields: []errs.Field{{Pointer: "/uuid", Message: "must be a string"}}}
		}
		uuid = text
	}
	return uuid, true, object.CheckUUID(uuid)
}
