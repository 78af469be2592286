package store

import (
	"context"
	"errors"

	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/store/driver"
	"belfry/pkg/store/object"
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

// Update changes an object and returns it as stored.
//
// Errors: NotFound; Mismatch when If does not hold; Invalid, TooLarge,
// Unauthenticated, Denied as for Save; Conflict when others, in other
// processes, kept changing the object meanwhile; Unavailable.
func (s *Store) Update(ctx context.Context, o object.Object, opts UpdateOptions) (Stored, error) {
	call := CallOf(ctx)
	uuid := opts.UUID
	if uuid == "" {
		uuid, _ = o.Text("uuid")
	}
	if err := object.CheckUUID(uuid); err != nil {
		return Stored{}, err
	}
	input := s.input(call, o)
	return s.rewrite(ctx, uuid, opts.If, func(record driver.Record) (*write, error) {
		stored, err := object.Decode(record.Body)
		if err != nil {
			return nil, err
		}
		next, err := s.merge(call, stored, input, opts.Patch)
		if err != nil {
			return nil, err
		}
		if call.Client {
			if err := s.allow(ctx, call, policy.Update, record.Body, input); err != nil {
				return nil, err
			}
		}
		if err := s.validate(ctx, next); err != nil {
			return nil, err
		}
		if next, err = s.intercept(ctx, call, "update", uuid, next, record.Body); err != nil {
			return nil, err
		}
		next[updated] = timestamp(s.Now())
		if call.Idempotency != nil {
			if err := call.Idempotency.record(ctx, s.Now(), next); err != nil {
				return nil, err
			}
		}
		w := &write{uuid: uuid, name: event.StoreUpdated, base: record, stored: stored, next: next}
		s.announceWrite(call, event.StoreUpdate, w)
		return w, nil
	})
}

func (s *Store) merge(call Call, stored, input object.Object, patch bool) (object.Object, error) {
	if call.Client && !call.Trusted && s.Policy != nil {
		s.Policy.SetOwner(policy.Update, call.User, input)
	}
	for name := range Binaries(stored) {
		delete(input, name)
	}
	if patch {
		return object.MergePatch(stored, input)
	}
	return stored.Merge(input), nil
}

// Amend replaces fields of an object that was read, arrays and internal fields
// included, if it is still at that revision. Nothing is judged, and the event
// says that no mapping follows: this is how workers keep what the server owns.
// A nil value removes the field.
//
// Errors: Mismatch when the object is no longer as read; Unavailable.
func (s *Store) CompareAndSet(ctx context.Context, base Stored, fields object.Object) (Stored, error) {
	former, err := base.Object()
	if err != nil {
		return Stored{}, err
	}
	next := former.Clone()
	for name, value := range fields {
		if value == nil {
			delete(next, name)
		} else {
			next[name] = value
		}
	}
	unlock, err := s.Locker.Lock(ctx, base.UUID)
	if err != nil {
		return Stored{}, err
	}
	defer unlock()
	return s.commit(ctx, CallOf(ctx), &write{
		uuid: base.UUID, name: event.StoreUpdated, stored: former, next: next,
		base: driver.Record{UUID: base.UUID, Revision: base.Revision, Body: base.Body},
	})
}

// Delete removes an object. Errors: NotFound; Mismatch when ifRevision, if not
// 0, does not hold; Unauthenticated or Denied; Conflict; Unavailable.
func (s *Store) Delete(ctx context.Context, uuid string, ifRevision uint64) error {
	call := CallOf(ctx)
	_, err := s.rewrite(ctx, uuid, ifRevision, func(record driver.Record) (*write, error) {
		if call.Client {
			if err := s.allow(ctx, call, policy.Delete, record.Body, nil); err != nil {
				return nil, err
			}
		}
		if _, err := s.intercept(ctx, call, "delete", uuid, nil, record.Body); err != nil {
			return nil, err
		}
		w := &write{uuid: uuid, name: event.StoreDeleted, base: record}
		if call.Idempotency != nil {
			w.exactRevision = call.Idempotency.Revision
		}
		s.announceWrite(call, event.StoreDelete, w)
		return w, nil
	})
	return err
}

// maxTries is how often a write is tried against writers in other processes.
const maxAttempts = 10

// rewrite reads an object, lets change say what to write, and writes it if the
// object is still as read; otherwise it starts over. No write is none.
func (s *Store) rewrite(ctx context.Context, uuid string, ifRevision uint64, change func(driver.Record) (*write, error)) (Stored, error) {
	unlock, err := s.Locker.Lock(ctx, uuid)
	if err != nil {
		return Stored{}, err
	}
	defer unlock()
	for range maxAttempts {
		record, found, err := s.driver.Get(ctx, uuid)
		if err != nil {
			return Stored{}, err
		}
		if once := CallOf(ctx).Idempotency; once != nil {
			if done, err := once.check(s.Name, uuid, record, found); done || err != nil {
				return s.project(CallOf(ctx), record), err
			}
		}
		if !found || record.Deleted {
			return Stored{}, s.missing(uuid)
		}
		if ifRevision != 0 && record.Revision != ifRevision {
			return Stored{}, errs.New(errs.Mismatch, "the object is at revision %d, not %d: read it again", record.Revision, ifRevision)
		}
		w, err := change(record)
		if err != nil {
			return Stored{}, err
		}
		if w == nil {
			return s.project(CallOf(ctx), record), nil
		}
		stored, err := s.commit(ctx, CallOf(ctx), w)
		if !errors.Is(err, errs.Mismatch) {
			return stored, err
		}
	}
	return Stored{}, s.contended(uuid)
}

// ErrContended is in the Conflict of a write that found no moment between the
// writes of others: to try again is worthwhile.
var ErrContended = errors.New("contended")

func (s *Store) contended(uuid string) error {
	return errs.Wrap(ErrContended, errs.Conflict, "others keep changing %s %q: try again", s.Name, uuid)
}
