package query

import (
	"slices"

	"belfry/pkg/object"
)

// Filter is a filter of single objects, such as those of events. It needs no index, and is immutable.
type Filter struct {
	node   *node
	fields []string // the top-level fields that it reads
}

// ParseFilter reads the filter of a list; nil for an empty one. Errors are errs.Invalid, as those of Parse.
func ParseFilter(text string) (*Filter, error) {
	n, err := parseFilter(text)
	if n == nil || err != nil {
		return nil, err
	}
	f := &Filter{node: n}
	n.each(func(c condition) {
		if !slices.Contains(f.fields, c.field.top) {
			f.fields = append(f.fields, c.field.top)
		}
	})
	return f, nil
}

// Fields returns the top-level fields that the filter reads. They must not be modified.
func (f *Filter) Fields() []string { return f.fields }

// Match reports whether an object meets the filter. It reads no other fields than Fields.
func (f *Filter) Match(o object.Object) bool { return f.node.match(o) }

// Work that takes as long as one unit of Cost.
const (
	elementBytes    = 4 // of an array that is searched
	scannedBytes    = 64
	literalsPerUnit = 4
)

// Cost estimates what Match costs at most for an object, in the units of package policy: 50 ns of a processor.
func (f *Filter) Cost(o object.Object) (units uint64) {
	f.node.each(func(c condition) {
		perUnit := scannedBytes
		if c.field.elements {
			perUnit = elementBytes
		}
		units += 2 + uint64(len(o[c.field.top])/perUnit+len(c.literals)/literalsPerUnit)
	})
	return units
}

// each calls f with each condition of the filter.
func (n *node) each(f func(condition)) {
	if n.kind == single {
		f(n.condition)
	}
	for _, arg := range n.args {
		arg.each(f)
	}
}
