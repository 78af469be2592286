package store

import (
	"context"

	"belfry/pkg/event"
	"belfry/pkg/store/driver"
	"belfry/pkg/store/object"
	"belfry/pkg/store/policy"
)

// Revision says how Revise changes an object.
type Mutation struct {
	Fields      object.Object // replace those of the object; a nil value removes
	ExtraEvents []ExtraEvent
}

// Revise changes fields of an object that belfry itself keeps and that no
// caller may set: records of binaries, what logging in needs. change is given
// the object as it is and is asked again when another write came between. A
// client needs the right to update, judged with Fields as the input, internal
// ones aside; the schema holds as for Update. A change without fields writes nothing.
//
// Errors: those of Update, and those of change.
func (s *Store) Mutate(ctx context.Context, uuid string, change func(Stored) (Mutation, error)) (Stored, error) {
	if err := object.CheckUUID(uuid); err != nil {
		return Stored{}, err
	}
	call := CallOf(ctx)
	return s.rewrite(ctx, uuid, 0, func(record driver.Record) (*write, error) {
		stored, err := object.Decode(record.Body)
		if err != nil {
			return nil, err
		}
		revision, err := change(Stored{UUID: uuid, Revision: record.Revision, Body: record.Body})
		if err != nil {
			return nil, err
		}
		if call.Client {
			if err := s.allow(ctx, call, policy.Update, record.Body, s.ruleInput(revision.Fields)); err != nil {
				return nil, err
			}
		}
		if len(revision.Fields) == 0 {
			return nil, nil
		}
		next := stored.Clone()
		for name, value := range revision.Fields {
			if value == nil {
				delete(next, name)
			} else {
				next[name] = value
			}
		}
		if err := s.validate(ctx, next); err != nil {
			return nil, err
		}
		if next, err = s.intercept(ctx, call, "update", uuid, next, record.Body); err != nil {
			return nil, err
		}
		next[updated] = timestamp(s.Now())
		w := &write{uuid: uuid, name: event.StoreUpdated, base: record, stored: stored, next: next, extraEvents: revision.ExtraEvents}
		s.announceWrite(call, event.StoreUpdate, w)
		return w, nil
	})
}

// revised is what a rule sees of a revision: a field that goes is null, as in a
// merge patch, and internal fields are nobody's business.
func (s *Store) ruleInput(fields object.Object) object.Object {
	input := s.withoutOwned(fields)
	for name, value := range input {
		if value == nil {
			input[name] = []byte("null")
		}
	}
	return input
}
