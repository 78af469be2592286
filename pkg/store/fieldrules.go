package store

import (
	"bytes"
	"context"
	"errors"
	"slices"

	"belfry/pkg/object"
	"belfry/pkg/store/driver"
	"belfry/pkg/store/policy"
)

// fieldReader returns what decides which fields a caller may read, nil for one who is not restricted by the rules
// of fields: the program itself, and trusted clients. For a list it decides about all its objects.
func (s *Store) fieldReader(ctx context.Context, call Call) *policy.FieldReader {
	if !call.Client || call.Trusted || len(s.fields.Readers()) == 0 {
		return nil
	}
	return s.FieldReader(ctx, call.User, call.Session, call.RuleBudget)
}

// FieldReader returns what decides which fields a user may read, nil for nobody in particular.
func (s *Store) FieldReader(ctx context.Context, user object.Object, session *policy.Session, budget *policy.Budget) *policy.FieldReader {
	return s.fields.For(policy.Input{User: user, Session: session, Now: s.opts.Now(), Budget: budget}, func(failed *policy.Denial) {
		s.opts.Logger.DebugContext(ctx, "a read rule of a field could not be evaluated, so the field is hidden",
			"store", s.opts.Name, "error", failed)
	})
}

// Fields returns the rules of fields.
func (s *Store) Fields() *policy.Fields { return s.fields }

// show returns a record as the caller may see it. decoded is its body, nil if it has not been decoded. Errors: those of
// a context that has ended and of a spent budget.
func (s *Store) show(ctx context.Context, call Call, reader *policy.FieldReader, r driver.Record, decoded object.Object) (Stored, error) {
	o := s.project(call, r)
	if reader == nil {
		return o, nil
	}
	var err error
	o.Body, err = s.readable(ctx, reader, o.Body, r.Body, decoded)
	return o, err
}

// readable returns a body without the fields that a reader must not see of a stored object.
func (s *Store) readable(ctx context.Context, reader *policy.FieldReader, body, stored []byte, decoded object.Object) ([]byte, error) {
	present, needsObject := s.restricted(body)
	if len(present) == 0 {
		return body, nil
	}
	if decoded == nil && needsObject {
		var err error
		if decoded, err = object.Decode(stored); err != nil {
			return nil, err
		}
	}
	hidden, err := reader.Hidden(ctx, present, decoded)
	if err != nil || len(hidden) == 0 {
		return body, err
	}
	return Without(body, hidden), nil
}

// restricted returns the fields of a body that have a read rule, and whether one of the rules depends on the object.
func (s *Store) restricted(body []byte) (present []string, needsObject bool) {
	_ = object.Each(body, func(name string, _ []byte) bool {
		if _, has := slices.BinarySearch(s.fields.Readers(), name); has {
			present = append(present, name)
			needsObject = needsObject || s.fields.NeedsObject(name)
		}
		return true
	})
	return present, needsObject
}

// Without returns an encoded object without fields.
func Without(body []byte, hidden []string) []byte {
	return without(body, func(name string) bool { return slices.Contains(hidden, name) })
}

// Shown returns an object as the caller may see it, who is not asked whether they may get it.
func (s *Store) Shown(ctx context.Context, o Stored) (Stored, error) {
	call := CallOf(ctx)
	return s.show(ctx, call, s.fieldReader(ctx, call), driver.Record{UUID: o.UUID, Revision: o.Revision, Body: o.Body}, nil)
}

// MayRead reports whether the caller may read a field of an object.
func (s *Store) MayRead(ctx context.Context, o Stored, field string) (bool, error) {
	call := CallOf(ctx)
	if call.Client && s.Hidden(field) {
		return false, nil
	}
	reader := s.fieldReader(ctx, call)
	if reader == nil {
		return true, nil
	}
	stored, err := o.Object()
	if err != nil {
		return false, err
	}
	return reader.MayRead(ctx, field, stored)
}

// allowFields evaluates the write rules of the fields that the input of a client changes. stored is nil for a new
// object; next is the object as it would be, nil if each field given changes. A field that keeps its value is not
// changed, but only for a client who may read it: others would learn its value by trying. Where the rule does not hold next has it
// as it is stored, however the client has written it: the text of a number decides whether a key names an object.
func (s *Store) allowFields(ctx context.Context, call Call, op policy.Op, stored, input, next object.Object) error {
	if !call.Client || call.Trusted {
		return nil
	}
	in := s.policyInput(call, stored, input)
	for _, name := range s.fields.Writers() {
		if _, given := input[name]; !given {
			continue
		}
		var keeps bool
		var err error
		if stored != nil && next != nil && object.SameValue(stored[name], next[name]) {
			if keeps, err = s.mayReadStored(ctx, call, name, stored); err != nil {
				return err
			}
		}
		if keeps && bytes.Equal(stored[name], next[name]) {
			continue
		}
		err = s.allowField(ctx, op, name, in)
		if keeps && isForbidden(err) {
			next[name] = stored[name]
			continue
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// allowMutation evaluates the write rules of the fields that a client has the server change; see Mutate.
func (s *Store) allowMutation(ctx context.Context, call Call, stored []byte, input object.Object) error {
	if !call.Client || call.Trusted || len(s.fields.Writers()) == 0 || len(input) == 0 {
		return nil
	}
	decoded, err := object.Decode(stored)
	if err != nil {
		return err
	}
	return s.allowFields(ctx, call, policy.Update, decoded, input, nil)
}

// mayReadStored reports whether a client may get an object, and read a field of it.
func (s *Store) mayReadStored(ctx context.Context, call Call, name string, stored object.Object) (bool, error) {
	if call.NoGet || s.fields.Never(name) {
		return false, nil
	}
	if s.opts.Policy != nil && !s.opts.Policy.Open(policy.Get) {
		if err := s.allowDecoded(ctx, policy.Get, s.policyInput(call, stored, nil)); err != nil {
			if isForbidden(err) {
				return false, nil
			}
			return false, err
		}
	}
	if reader := s.fieldReader(ctx, call); reader != nil {
		if may, err := reader.MayRead(ctx, name, stored); !may || err != nil {
			return false, err
		}
	}
	return !s.opts.InterceptsGet || s.showsByInterceptor(ctx, call, name, stored), nil
}

// showsByInterceptor reports whether an interceptor of get leaves a field as it is. Where it refuses or fails it does not.
func (s *Store) showsByInterceptor(ctx context.Context, call Call, name string, stored object.Object) bool {
	uuid, _ := stored.Text("uuid")
	seen, err := s.get(ctx, call, driver.Record{UUID: uuid, Body: stored.Encode()})
	if err != nil {
		return false
	}
	value := object.Field(seen.Body, name)
	return value != nil && object.SameValue(value, stored[name])
}

// allowField evaluates the write rule of a field.
func (s *Store) allowField(ctx context.Context, op policy.Op, name string, in policy.Input) error {
	err := s.fields.AllowWrite(ctx, op, name, in)
	if failed := (*policy.Denial)(nil); errors.As(err, &failed) && failed.Reason != "" {
		s.opts.Logger.DebugContext(ctx, "a write rule of a field could not be evaluated, so the write is denied",
			"store", s.opts.Name, "error", failed)
	}
	return err
}
