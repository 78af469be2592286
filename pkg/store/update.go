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

// UpdateOptions say how Update merges.
type UpdateOptions struct {
	UUID string // "": the object's own field uuid
	If   uint64 // not 0: only while the object is at this revision

	// Patch merges by RFC 7396: nested objects are merged and null removes.
	// Otherwise each field given replaces the stored one, and those absent stay.
	Patch bool
}

// Update changes an object and returns it as stored, to a client what a get would
// return: see reply.
//
// Errors: NotFound; Mismatch when If does not hold; Invalid, TooLarge, Taken,
// Unauthenticated, Denied as for Save; Conflict when writers in other processes
// kept changing the object; Unavailable.
func (s *Store) Update(ctx context.Context, o object.Object, opts UpdateOptions) (Stored, error) {
	call := CallOf(ctx)
	uuid := opts.UUID
	if uuid == "" {
		uuid, _ = o.Text("uuid")
	}
	if err := object.CheckUUID(uuid); err != nil {
		return Stored{}, err
	}
	given := s.rules.Settable(call.caller(), o)
	written, err := s.rewrite(ctx, uuid, func(record driver.Record) (*write, error) {
		stored, next, err := s.prepareUpdate(ctx, call, record, given, opts)
		if err != nil {
			return nil, err
		}
		if next, err = s.intercept(ctx, call, "update", uuid, next, record.Body); err != nil {
			return nil, err
		}
		next[access.Updated] = object.TimeValue(s.opts.Now())
		if call.Idempotency != nil {
			if err := call.Idempotency.record(ctx, s.opts.Now(), next); err != nil {
				return nil, err
			}
		}
		w := &write{uuid: uuid, name: event.StoreUpdated, base: record, stored: stored, next: next}
		s.announceWrite(call, event.StoreUpdate, w)
		return w, nil
	})
	if err != nil {
		return Stored{}, err
	}
	return s.reply(ctx, written), nil
}

// prepareUpdate authorizes and validates an update of a record, and returns the object before and after it.
func (s *Store) prepareUpdate(ctx context.Context, call Call, record driver.Record, given object.Object, opts UpdateOptions) (stored, next object.Object, err error) {
	if stored, err = object.Decode(record.Body); err != nil {
		return nil, nil, err
	}
	input := access.WithoutBinaries(given, stored)
	defer func() { err = s.hide(ctx, call, policy.Update, record, input, err) }()
	if err = s.checkInput(input); err != nil {
		return nil, nil, err
	}
	if next, err = merge(stored, input, opts.Patch); err != nil {
		return nil, nil, err
	}
	if call.Client {
		s.keepNames(stored, next)
	}
	if call.Client {
		if err := s.rules.Allow(ctx, call.caller(), policy.Update, record.Body, input); err != nil {
			return nil, nil, err
		}
		if err := s.rules.AllowFields(ctx, call.caller(), policy.Update, stored, input, next); err != nil {
			return nil, nil, err
		}
	}
	if err := isAt(record, opts.If); err != nil {
		return nil, nil, err
	}
	if err := s.validate(ctx, stored, next); err != nil {
		return nil, nil, s.rules.ConcealUpdate(ctx, call.caller(), err, stored, input, opts.Patch)
	}
	return stored, next, nil
}

// keepNames leaves a mapped key as it is stored where a client gives it the same value, written in a way that names fewer
// objects: 1.0 for 1. A rule such as input.author == object.author holds for both, and only one of them has entries.
func (s *Store) keepNames(stored, next object.Object) {
	for _, key := range s.mapped {
		before, after := stored[key], next[key]
		if before != nil && after != nil && len(KeyTargets(after)) < len(KeyTargets(before)) && object.SameValue(before, after) {
			next[key] = before
		}
	}
}

// CheckUpdate returns the error that Update would return by the rules, the schema and the limits, without updating anything.
// It finds no value that another object has (Taken), and asks no interceptor. The uuid is that of the options.
func (s *Store) CheckUpdate(ctx context.Context, o object.Object, opts UpdateOptions) error {
	call := CallOf(ctx)
	record, err := s.read(ctx, opts.UUID)
	if err != nil {
		return err
	}
	_, _, err = s.prepareUpdate(ctx, call, record, s.rules.Settable(call.caller(), o), opts)
	return err
}

// CheckDelete returns the error that Delete of an object at any revision would return by the rules, without deleting
// anything. It asks neither an interceptor nor BeforeDelete.
func (s *Store) CheckDelete(ctx context.Context, uuid string) error {
	call := CallOf(ctx)
	record, err := s.read(ctx, uuid)
	if err != nil {
		return err
	}
	return s.mayDelete(ctx, call, record)
}

// mayDelete returns the error of a client that may not delete a record.
func (s *Store) mayDelete(ctx context.Context, call Call, record driver.Record) error {
	if !call.Client {
		return nil
	}
	return s.hide(ctx, call, policy.Delete, record, nil, s.rules.Allow(ctx, call.caller(), policy.Delete, record.Body, nil))
}

func merge(stored, input object.Object, patch bool) (object.Object, error) {
	if patch {
		return object.MergePatch(stored, input)
	}
	return stored.Merge(input), nil
}

// Delete removes an object. The extra events get the last state of the object. Errors: NotFound; Mismatch when ifRevision, if not
// 0, does not hold; Unauthenticated or Denied; Conflict; Unavailable.
func (s *Store) Delete(ctx context.Context, uuid string, ifRevision uint64, also ...ExtraEvent) error {
	call := CallOf(ctx)
	_, err := s.rewrite(ctx, uuid, func(record driver.Record) (*write, error) {
		if err := s.mayDelete(ctx, call, record); err != nil {
			return nil, err
		}
		if err := isAt(record, ifRevision); err != nil {
			return nil, err
		}
		if _, err := s.intercept(ctx, call, "delete", uuid, nil, record.Body); err != nil {
			return nil, err
		}
		if s.opts.BeforeDelete != nil && call.Client {
			if err := s.opts.BeforeDelete(ctx, Stored{UUID: record.UUID, Revision: record.Revision, Body: record.Body}); err != nil {
				return nil, err
			}
		}
		w := &write{uuid: uuid, name: event.StoreDeleted, base: record, extraEvents: also}
		if call.Idempotency != nil {
			w.exactRevision = call.Idempotency.Revision
		}
		s.announceWrite(call, event.StoreDelete, w)
		return w, nil
	})
	return err
}

// isAt returns Mismatch unless a record has the revision that a caller expects; 0: any. The policy is asked first: a
// Mismatch reveals the revision.
func isAt(record driver.Record, expected uint64) error {
	if expected == 0 || record.Revision == expected {
		return nil
	}
	return errs.New(errs.Mismatch, "the object is at revision %d, not %d: read it again", record.Revision, expected)
}

// maxAttempts is how often a write is attempted against writers in other
// processes.
var maxAttempts = 10 // fewer in tests that explore every interleaving

// rewrite reads an object, asks change what to write, and writes it if the
// record is still as read; otherwise it starts over. When change returns nil,
// nothing is written. It returns the record after the write.
func (s *Store) rewrite(ctx context.Context, uuid string, change func(driver.Record) (*write, error)) (driver.Record, error) {
	unlock, err := s.opts.Locker.Lock(ctx, uuid)
	if err != nil {
		return driver.Record{}, err
	}
	defer unlock()
	for range maxAttempts {
		record, found, err := s.driver.Get(ctx, uuid)
		if err != nil {
			return driver.Record{}, err
		}
		if once := CallOf(ctx).Idempotency; once != nil {
			if done, err := once.check(s.opts.Name, uuid, record, found); done || err != nil {
				return record, err
			}
		}
		if !found || record.Deleted {
			return driver.Record{}, s.missing(uuid)
		}
		w, err := change(record)
		if err != nil {
			return driver.Record{}, err
		}
		if w == nil {
			return record, nil
		}
		written, err := s.commit(ctx, CallOf(ctx), w)
		if !errors.Is(err, errs.Mismatch) {
			return written, err
		}
	}
	return driver.Record{}, s.contended(uuid)
}

// ErrContended is in the Conflict of a write that lost every attempt to
// concurrent writes. Retrying can succeed.
var ErrContended = errors.New("contended")

func (s *Store) contended(uuid string) error {
	return errs.Wrap(ErrContended, errs.Conflict, "concurrent writes keep changing %s %q: try again", s.opts.Name, uuid)
}
