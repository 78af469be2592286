package store

import (
	"context"
	"errors"
	"slices"

	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/object"
	"belfry/pkg/store/driver"
)

// confirm reads the objects again that a write newly names, by references that restrict deletions. A deletion that has
// looked for objects before the write has marked its object, and fails once the mark is removed. If the object has been
// deleted meanwhile, the write is undone: it was not acknowledged.
//
// Errors: Invalid for an object that was deleted; Unavailable, after which the write is not acknowledged either.
func (w *writer) confirm(ctx context.Context, made *write, written driver.Record) error {
	if made.next == nil {
		return nil
	}
	gone, err := w.deletedTarget(ctx, made.stored, made.next)
	if err != nil || gone == nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeGrace)
	defer cancel()
	if err := w.undo(ctx, made, written); err != nil {
		return err
	}
	return gone.missing()
}

// undo takes a write back, unless a caller has written the object since. Changes by workers stay.
func (w *writer) undo(ctx context.Context, made *write, written driver.Record) error {
	now := written
	for range maxAttempts {
		back := &write{uuid: made.uuid, base: now, name: event.StoreDeleted}
		if made.stored != nil {
			o, err := object.Decode(now.Body)
			if err != nil {
				return err
			}
			back.name, back.stored, back.next, back.undoes = event.StoreUpdated, o, without(made, o), true
		}
		_, err := w.commit(ctx, CallOf(ctx), back)
		if !errors.Is(err, errs.Mismatch) {
			return err
		}
		record, found, err := w.driver.Get(ctx, made.uuid)
		if err != nil || !found || record.Deleted || !onlyWorkersSince(record, written.Revision) {
			return err
		}
		now = record
	}
	return w.contended(made.uuid)
}

// without returns an object without the changes of a write.
func without(made *write, o object.Object) object.Object {
	o = o.Clone()
	for name := range made.next {
		if made.stored[name] == nil {
			delete(o, name)
		}
	}
	for name, value := range made.stored {
		if !slices.Equal(value, made.next[name]) {
			o[name] = value
		}
	}
	return o
}

// confirmApplied is confirm for a write that an earlier attempt may have made without acknowledging it. It undoes
// nothing: what was before the write is not known.
func (w *writer) confirmApplied(ctx context.Context, record driver.Record) error {
	if record.Deleted || !w.checks.required.restrict() {
		return nil
	}
	o, err := object.Decode(record.Body)
	if err != nil {
		return err
	}
	gone, err := w.deletedTarget(ctx, nil, o)
	if err == nil && gone != nil {
		err = gone.missing()
	}
	return err
}

// deletedTarget returns a reference that restricts deletions and newly names an object that has been deleted, otherwise
// nil. Then no deletion of the objects succeeds that has not seen the write.
func (w *writer) deletedTarget(ctx context.Context, stored, next object.Object) (*Reference, error) {
	r := w.checks.required
	self, _ := next.Text("uuid")
	for i := range r.references {
		ref := &r.references[i]
		if ref.OnDelete != OnDeleteRestrict {
			continue
		}
		target := r.peers.store(ref.Target)
		for _, uuid := range r.added(ref, stored, next) {
			if object.CheckUUID(uuid) != nil || ref.Target == w.name && self == uuid {
				continue
			}
			there, err := target.writer.hold(ctx, uuid, ref.Required)
			if err != nil {
				return nil, err
			}
			if !there {
				return ref, nil
			}
		}
	}
	return nil, nil
}
