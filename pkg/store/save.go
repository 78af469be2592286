package store

import (
	"context"
	"errors"

	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/store/object"
	"belfry/pkg/store/policy"
)

// Save stores a new object. Its uuid is the one given, else the object's own
// field uuid, else a new UUIDv7. It returns the object as stored.
//
// Errors: Invalid (uuid, schema, key), TooLarge, Exists when the uuid is
// taken, Unauthenticated or Denied by the policy, Unavailable.
func (s *Store) Save(ctx context.Context, o object.Object, uuid string, also ...ExtraEvent) (Stored, error) {
	call := CallOf(ctx)
	uuid, err := chooseUUID(o, uuid)
	if err != nil {
		return Stored{}, err
	}
	next, err := s.prepareCreate(ctx, call, o, uuid)
	if err != nil {
		return Stored{}, err
	}
	if next, err = s.intercept(ctx, call, "save", uuid, next, nil); err != nil {
		return Stored{}, err
	}
	stamp := timestamp(s.Now())
	next[created], next[updated] = stamp, stamp
	w := write{uuid: uuid, name: event.StoreSaved, next: next, extraEvents: also}
	if call.Idempotency != nil {
		call.Idempotency.prepareSave(&w)
	}
	s.announceWrite(call, event.StoreSave, &w)

	unlock, err := s.Locker.Lock(ctx, uuid)
	if err != nil {
		return Stored{}, err
	}
	defer unlock()
	// Nothing is read on the way: the driver's precondition says whether the
	// uuid is free. Only a clash looks at what is there.
	for range maxAttempts {
		stored, err := s.commit(ctx, call, &w)
		if !errors.Is(err, errs.Mismatch) {
			return stored, err
		}
		record, found, err := s.driver.Get(ctx, uuid)
		if err != nil {
			return Stored{}, err
		}
		if call.Idempotency != nil && call.Idempotency.savedBy(record, found) {
			return s.project(call, record), nil
		}
		if found && !record.Deleted {
			return Stored{}, errs.New(errs.Exists, "%s has an object %q already", s.Name, uuid)
		}
		if call.Idempotency != nil {
			return Stored{}, Superseded(s.Name, uuid)
		}
		// A tombstone from ahead of this machine's clock.
		w.minRevision = record.Revision
	}
	return Stored{}, s.contended(uuid)
}

// Check reports what Save would refuse, without saving anything: the errors of
// Save, but for Exists.
func (s *Store) Check(ctx context.Context, o object.Object, uuid string) error {
	uuid, err := chooseUUID(o, uuid)
	if err != nil {
		return err
	}
	_, err = s.prepareCreate(ctx, CallOf(ctx), o, uuid)
	return err
}

// creation judges an object that is to be new, and returns what of it is kept.
func (s *Store) prepareCreate(ctx context.Context, call Call, o object.Object, uuid string) (object.Object, error) {
	next := s.input(call, o)
	if call.Client {
		if s.Policy != nil && !call.Trusted {
			s.Policy.SetOwner(policy.Create, call.User, next)
		}
		if err := s.allow(ctx, call, policy.Create, nil, next); err != nil {
			return nil, err
		}
	}
	next["uuid"] = object.AppendString(nil, uuid)
	return next, s.validate(ctx, next)
}

func chooseUUID(o object.Object, uuid string) (string, error) {
	if uuid == "" {
		value, ok := o["uuid"]
		if !ok {
			return object.NewUUID(), nil
		}
		text, isText := object.Text(value)
		if !isText {
			return "", &errs.Error{Kind: errs.Invalid, Message: "the uuid must be a string",
				Fields: []errs.Field{{Pointer: "/uuid", Message: "must be a string"}}}
		}
		uuid = text
	}
	return uuid, object.CheckUUID(uuid)
}

// validate judges what the callers of a store are answerable for: the size,
// the keys, the schema.
func (s *Store) validate(ctx context.Context, o object.Object) error {
	if err := s.checkKeys(o); err != nil {
		return err
	}
	if size := s.size(o); size > s.MaxSize {
		return errs.New(errs.TooLarge, "the object would have %d bytes; %s takes at most %d", size, s.Name, s.MaxSize)
	}
	if s.Schema == nil {
		return nil
	}
	return s.Schema.Validate(ctx, s.withoutOwned(o).Encode())
}
