package store

import (
	"context"

	"belfry/pkg/object"
	"belfry/pkg/store/access"
)

// A schema judges what callers are responsible for. What belfry maintains counts as present, and its value is not judged:
// the schema sees the object without it.

// PartValidator is a Validator that knows what of an object is left out.
type PartValidator interface {
	Validator

	// ValidatePart is Validate of an object without some of its fields: those for which present holds count as being there.
	// Of those that the object has all the same it judges the values, by what declares them, and nothing else.
	ValidatePart(ctx context.Context, doc []byte, present func(name string) bool) error

	// Declares reports whether the schema declares a field by its name, and Knows whether it says anything of it, by a
	// pattern for names, too.
	Declares(name string) bool
	Knows(name string) bool
}

// judge validates an object by a schema, as the store has it or as it will.
func (s *Store) judge(ctx context.Context, schema Validator, o object.Object) error {
	maintained := s.maintainedOf(schema, o)
	judged := make(object.Object, len(o))
	for name, value := range o {
		if !maintained(name) {
			judged[name] = value
		}
	}
	if part, ok := schema.(PartValidator); ok {
		// A uuid that is declared in one part of the schema must be allowed in others: every object has one.
		return part.ValidatePart(ctx, judged.Encode(), func(name string) bool { return name == "uuid" || maintained(name) })
	}
	return schema.Validate(ctx, judged.Encode())
}

// maintainedOf returns which fields a schema does not judge in some objects, which are states of one: those that belfry
// maintains. A uuid that the schema declares is judged, as a client may choose it. Files that are not
// in a property that the configuration names for them (Binaries) may be where the schema declares something else, so only
// a property of which it says nothing is maintained while it holds files.
func (s *Store) maintainedOf(schema Validator, states ...object.Object) func(name string) bool {
	part, _ := schema.(PartValidator)
	holdsFiles := map[string]bool{}
	for _, o := range states {
		for name := range access.Binaries(o) {
			holdsFiles[name] = part != nil && !part.Knows(name)
		}
	}
	declaresUUID := part == nil || part.Declares("uuid")
	return func(name string) bool {
		if name == "uuid" {
			return !declaresUUID
		}
		return s.rules.Maintains(name) || holdsFiles[name]
	}
}

// mayMismatch reports whether a schema may judge an object otherwise once some of its fields have changed.
func (s *Store) mayMismatch(schema Validator, before, after, changed object.Object) bool {
	maintained := s.maintainedOf(schema, before, after)
	for name := range changed {
		if !maintained(name) {
			return true
		}
	}
	return false
}

// Judge returns a validator of objects as clients send them to a store with these options: what Save does with the defaults
// and the schema, without a store.
func Judge(o Options) Validator { return judge{newStore(o)} }

type judge struct{ store *Store }

// Validate validates an object with its uuid.
func (j judge) Validate(ctx context.Context, doc []byte) error {
	if j.store.opts.Schema == nil {
		return nil
	}
	o, err := object.Decode(doc)
	if err != nil {
		return err
	}
	return j.store.judge(ctx, j.store.opts.Schema, j.store.withDefaults(o))
}
