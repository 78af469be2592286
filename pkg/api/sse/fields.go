package sse

import (
	"context"
	"slices"

	"belfry/pkg/object"
	"belfry/pkg/store/policy"
)

// fieldRules are the read rules of the fields of a store's objects. Like the rules of the store, they have to hold
// for the object in the event and for the present object. A field whose rule depends on the object is left out if
// one of these states is unknown, or if a rule reads fields that no event has.
type fieldRules struct {
	names       []string // of the fields with a read rule
	byObject    bool     // a rule depends on the object
	readsHidden bool     // a rule may read fields that no event has
}

func newFieldRules(from *source) fieldRules {
	rules := from.store.Rules().Fields()
	f := fieldRules{names: rules.Readers(), readsHidden: rules.MayRead(from.hides)}
	for _, name := range f.names {
		f.byObject = f.byObject || rules.NeedsObject(name)
	}
	return f
}

// hiddenFields returns the fields that a viewer of the event may not read.
func (a *authorization) hiddenFields(ctx context.Context, v *Viewer, now *state,
	cost *policy.Budget) (hidden []string, err error) {
	of := a.source.fields
	if len(of.names) == 0 {
		return nil, nil
	}
	states, known := a.states(now, of.readsHidden)
	rules := a.source.store.Rules()
	fields, reader := rules.Fields(), rules.FieldReader(ctx, v.User, v.Rules, cost)
	for _, name := range of.names {
		may := true
		switch {
		case !fields.NeedsObject(name):
			may, err = reader.MayRead(ctx, name, nil)
		case !known:
			may = false
		default:
			for _, o := range states {
				if may && err == nil {
					may, err = reader.MayRead(ctx, name, o)
				}
			}
		}
		if err != nil {
			return nil, err
		}
		if !may {
			hidden = append(hidden, name)
		}
	}
	return hidden, nil
}

// appendTo appends the entry as it is sent to a viewer.
func (e *entry) appendTo(out []byte, hidden []string) []byte {
	if len(hidden) == 0 || e.objectSize == 0 {
		return append(out, e.frame...)
	}
	end := e.objectAt + e.objectSize
	out = append(out, e.frame[:e.objectAt]...)
	out = append(out,
		object.Without(e.frame[e.objectAt:end], func(name string) bool { return slices.Contains(hidden, name) })...)
	return append(out, e.frame[end:]...)
}
