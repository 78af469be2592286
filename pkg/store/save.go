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

// Save stores a new object. Its uuid is the one given, else the object's own
// field uuid, else a new UUIDv7. It returns the object as stored, to a client what
// a get would return: see reply.
//
// Errors: Invalid (uuid, schema, key), TooLarge, Exists when the uuid is
// taken, Taken when another object has a value that must be unique,
// Unauthenticated or Denied by the policy, Unavailable.
func (s *Store) Save(ctx context.Context, o object.Object, uuid string, also ...ExtraEvent) (Stored, error) {
	record, err := s.create(ctx, o, uuid, also)
	if err != nil {
		return Stored{}, err
	}
	return s.reply(ctx, record), nil
}

// create takes the steps of Save, and returns the record.
func (s *Store) create(ctx context.Context, o object.Object, uuid string, also []ExtraEvent) (driver.Record, error) {
	call := CallOf(ctx)
	uuid, chosen, err := uuidOf(o, uuid)
	if err != nil {
		return driver.Record{}, err
	}
	fresh := !chosen && !s.intercepts(call)
	if call.Idempotency != nil && call.Idempotency.NewUUID {
		chosen = false
	}
	next, err := s.prepareCreate(ctx, call, o, uuid, chosen)
	if err != nil {
		return driver.Record{}, err
	}
	if next, err = s.intercept(ctx, call, "save", uuid, next, nil); err != nil {
		return driver.Record{}, err
	}
	stamp := object.TimeValue(s.opts.Now())
	next[access.Created], next[access.Updated] = stamp, stamp
	w := write{uuid: uuid, fresh: fresh, name: event.StoreSaved, next: next, extraEvents: also}
	if call.Idempotency != nil {
		call.Idempotency.prepareSave(&w)
	}
	s.announceWrite(call, event.StoreSave, &w)

	unlock, err := s.opts.Locker.Lock(ctx, uuid)
	if err != nil {
		return driver.Record{}, err
	}
	defer unlock()
	// Nothing is read first: the driver's precondition says whether the uuid is
	// free. Only after a failure is the record read: an object that exists may have
	// had, at an earlier attempt, a value that is another one's by now.
	for range maxAttempts {
		written, failed := s.commit(ctx, call, &w)
		taken := errors.Is(failed, errs.Taken)
		if !taken && !errors.Is(failed, errs.Mismatch) {
			return written, failed
		}
		record, found, err := s.driver.Get(ctx, uuid)
		if err != nil {
			return driver.Record{}, err
		}
		if call.Idempotency != nil && call.Idempotency.savedBy(record, found) {
			return record, nil
		}
		if found && !record.Deleted {
			return driver.Record{}, errs.New(errs.Exists, "%s already has an object %q", s.opts.Name, uuid)
		}
		if taken { // by another object, and this is no repetition
			return driver.Record{}, failed
		}
		if call.Idempotency != nil && found && tombstoneOf(record).Revision < call.Idempotency.Revision {
			return driver.Record{}, errStale(s.opts.Name, uuid) // a fence, which no write came before
		}
		if call.Idempotency != nil {
			return driver.Record{}, Superseded(s.opts.Name, uuid)
		}
		// A tombstone with a revision ahead of this machine's clock.
		w.minRevision = record.Revision
	}
	return driver.Record{}, s.contended(uuid)
}

// Check returns the error that Save would return, without saving anything. It finds no uuid that is taken, and asks no
// interceptor.
func (s *Store) Check(ctx context.Context, o object.Object, uuid string) error {
	call := CallOf(ctx)
	uuid, chosen, err := uuidOf(o, uuid)
	if err != nil {
		return err
	}
	next, err := s.prepareCreate(ctx, call, o, uuid, chosen)
	if err != nil {
		return err
	}
	return s.checkFree(ctx, next.Encode(), uuid)
}

// prepareCreate authorizes and validates a new object, and returns what of it is
// stored. chosen says that the caller chose the uuid.
func (s *Store) prepareCreate(ctx context.Context, call Call, o object.Object, uuid string, chosen bool) (object.Object, error) {
	input := s.rules.Settable(call.caller(), o)
	if err := s.checkInput(input); err != nil {
		return nil, err
	}
	if call.Client {
		s.rules.SetOwner(call.caller(), input)
	}
	next := s.withDefaults(input)
	if call.Client {
		if err := s.rules.Allow(ctx, call.caller(), policy.Create, nil, next); err != nil {
			return nil, err
		}
		// A default is no field that the client writes.
		if err := s.rules.AllowFields(ctx, call.caller(), policy.Create, nil, input, next); err != nil {
			return nil, err
		}
		if chosen && !call.Trusted && s.opts.Policy != nil && !s.opts.ClientUUIDs {
			return nil, &errs.Error{Kind: errs.Invalid, Message: "the server chooses the uuids of new objects of " + s.opts.Name + ": leave the uuid out",
				Fields: []errs.Field{{Pointer: "/uuid", Message: "must be left out"}}}
		}
	}
	next["uuid"] = object.AppendString(nil, uuid)
	return next, s.validate(ctx, nil, next)
}

// withDefaults returns a new object with the defaults of what its caller has left out. What the store maintains has none.
func (s *Store) withDefaults(input object.Object) object.Object {
	if s.opts.Defaults == nil {
		return input
	}
	next := input.Clone()
	s.opts.Defaults.Fill(next)
	next.Canonicalize()
	for name := range next {
		_, given := input[name]
		if !given && (name == "uuid" || s.rules.Maintains(name)) {
			delete(next, name)
		}
	}
	return next
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

// checkInput refuses what can't lead to an object of the largest size, before it is merged and rules are evaluated on it. Fields
// that a patch removes count for neither, so there may be some.
func (s *Store) checkInput(input object.Object) error {
	if size := s.size(input); size > 2*s.opts.MaxSize {
		return errs.New(errs.TooLarge, "the object would have %d bytes; %s takes at most %d", size, s.opts.Name, s.opts.MaxSize)
	}
	return nil
}

// validate checks what the callers of a store are responsible for: the size,
// the keys, the schema. stored is the object before; nil for a new one.
func (s *Store) validate(ctx context.Context, stored, next object.Object) error {
	if err := s.checkLimits(stored, next); err != nil || s.opts.Schema == nil {
		return err
	}
	return s.judge(ctx, s.opts.Schema, next)
}

// checkLimits checks the size of an object, and what of it is indexed, unique or copied. A value that is as it was is never
// too much, whatever has been configured since it was written: a write that has nothing to do with it must not fail.
func (s *Store) checkLimits(stored, next object.Object) error {
	if err := s.checkKeys(stored, next); err != nil {
		return err
	}
	if err := s.checkUnique(stored, next); err != nil {
		return err
	}
	if err := s.checkCopied(stored, next); err != nil {
		return err
	}
	if size := s.size(next); size > s.opts.MaxSize {
		return errs.New(errs.TooLarge, "the object would have %d bytes; %s takes at most %d", size, s.opts.Name, s.opts.MaxSize)
	}
	return nil
}

// isUnchanged reports whether a field has the value that it had.
func isUnchanged(stored, next object.Object, name string) bool {
	return stored[name] != nil && object.SameValue(stored[name], next[name])
}

// size returns how many bytes the fields take as JSON that belfry does not maintain.
func (s *Store) size(o object.Object) int {
	size := len("{") // and each field ends with a comma or with the final brace
	for name, value := range o {
		if !s.rules.OwnedByStore(name) {
			size += len(`"":,`) + len(name) + len(value)
		}
	}
	return max(size, len("{}"))
}
