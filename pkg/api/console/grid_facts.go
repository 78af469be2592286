package console

import (
	"belfry/pkg/api/console/form"
	"belfry/pkg/object"
	"belfry/pkg/store"
)

// fieldFacts are what the schema says about the values of a field, for those who enter one.
type fieldFacts struct {
	Input   form.Kind // of its input
	Options []form.Option
	Bounds  string // of a number, in words
}

// facts returns what the schema of a store says about its fields; nil if it describes none.
func (v *objectsView) facts(name string, st *store.Store) map[string]fieldFacts {
	return v.storeForm(name, st).facts
}

// factsOf returns the facts about the fields of a form.
func factsOf(f *form.Form) map[string]fieldFacts {
	all := make(map[string]fieldFacts, len(f.Fields))
	for _, one := range f.Fields {
		name := object.UnescapeToken(one.Pointer[1:])
		all[name] = fieldFacts{Input: one.Kind, Options: one.Options, Bounds: one.Bounds}
	}
	return all
}
