package store

import (
	"context"

	"belfry/pkg/event"
	"belfry/pkg/object"
	"belfry/pkg/store/access"
	"belfry/pkg/store/driver"
	"belfry/pkg/store/policy"
)

// Mutation says how Mutate changes an object.
type Mutation struct {
	Fields      object.Object // replace those of the object; a nil value removes
	ExtraEvents []ExtraEvent
}

// Mutate changes fields of an object that belfry itself maintains and that no
// caller may set: records of binaries, the state of logins. It calls change with
// the stored object, and again when another write came first. A client needs the
// right to update, with Fields as the rule's input, internal fields excluded; the
// schema holds as for Update, unless the fields are all belfry's own. Without Fields nothing is written. It
// returns the object, to a client its uuid and revision alone.
//
// Errors: those of Update, and those of change.
func (s *Store) Mutate(ctx context.Context, uuid string, change func(Stored) (Mutation, error)) (Stored, error) {
	if err := object.CheckUUID(uuid); err != nil {
		return Stored{}, err
	}
	call := CallOf(ctx)
	written, err := s.rewrite(ctx, uuid, func(record driver.Record) (*write, error) {
		stored, err := object.Decode(record.Body)
		if err != nil {
			return nil, err
		}
		m, err := change(Stored{UUID: uuid, Revision: record.Revision, Body: record.Body})
		if err != nil {
			return nil, err
		}
		if call.Client {
			input := s.ruleInput(m.Fields)
			if err := s.rules.Allow(ctx, call.caller(), policy.Update, record.Body, input); err != nil {
				return nil, err
			}
			if err := s.rules.AllowMutation(ctx, call.caller(), record.Body, input); err != nil {
				return nil, err
			}
		}
		if len(m.Fields) == 0 {
			return nil, nil
		}
		next := withFields(stored, m.Fields)
		next.Canonicalize()
		if err := s.validateMutation(ctx, stored, next, m.Fields); err != nil {
			return nil, s.rules.ConcealUpdate(ctx, call.caller(), err, stored, nil, false)
		}
		if next, err = s.intercept(ctx, call, "update", uuid, next, record.Body); err != nil {
			return nil, err
		}
		next[access.Updated] = object.TimeValue(s.opts.Now())
		w := &write{uuid: uuid, name: event.StoreUpdated, base: record, stored: stored, next: next, extraEvents: m.ExtraEvents}
		s.announceWrite(call, event.StoreUpdate, w)
		return w, nil
	})
	if err != nil {
		return Stored{}, err
	}
	return s.replyWithoutBody(ctx, written), nil
}

// validateMutation is validate for a change of some fields. What the schema sees is as before where belfry changes what it
// maintains alone: an object that a later schema does not accept must not keep a user from being disabled.
func (s *Store) validateMutation(ctx context.Context, stored, next, changed object.Object) error {
	if !s.ownsAll(changed) {
		if err := s.checkLimits(stored, next); err != nil {
			return err
		}
	}
	if s.opts.Schema == nil || !s.mayMismatch(s.opts.Schema, stored, next, changed) {
		return nil
	}
	return s.judge(ctx, s.opts.Schema, next)
}

// ownsAll reports whether belfry itself maintains all fields of a mutation.
func (s *Store) ownsAll(fields object.Object) bool {
	for name := range fields {
		if !s.rules.OwnedByStore(name) {
			return false
		}
	}
	return true
}

// ruleInput is the input that a rule sees for a mutation: a removed field is
// null, as in a merge patch, and internal fields are left out.
func (s *Store) ruleInput(fields object.Object) object.Object {
	input := s.rules.WithoutOwned(fields)
	for name, value := range input {
		if value == nil {
			input[name] = []byte("null")
		}
	}
	return input
}
