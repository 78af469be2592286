// Package query turns a list's filter and sort order into ranges of declared indexes, so
// the cost of a list is proportional to what these ranges have. A list that no index
// supports is rejected, never executed by a scan.
//
// A filter is in a subset of CEL. It joins the following conditions by &&, || and !:
//
//	a comparison of a field with literals   ==, !=, <, <=, >, >=, in
//	field.startsWith("...")
//	has(field)
//	"x" in field                            for the elements of an array
//
// A field is a top-level one or one level below: address.city. A name that is not a plain word, or is
// in, is written object["first-name"]. Literals are the strings and numbers of JSON, as encoders write
// them, and those of CEL, and true, false and null. The fields created and updated of the object
// compare as times.
//
// A comparison is true of values of the literal's type only: year > 5 is about numbers,
// and about no object that lacks the field. Its negation is true of all other objects,
// also of those that lack the field: year != 5 is !(year == 5).
//
// The filter becomes a disjunction of conjunctions. An index supports a conjunction by equalities
// on its leading fields (several for in), then ranges on the next one, in the order of those that
// follow. The ranges of all conjunctions are read in one order and merged.
//
// A condition outside the index that is read is evaluated on the objects, if another index begins
// with its field. Backends that can do so intersect the read of an index with others: see
// Plan.Intersecting.
package query

import (
	"bytes"
	"cmp"
	"slices"

	"belfry/pkg/object"
)

// maxReads is how many ranges a list reads at most.
const maxReads = 32

// Plan is a list that indexes support. It is immutable.
type Plan struct {
	filter         *node // nil: none
	conjunctions   [][]condition
	sort           order // as it was asked for
	reads          []Read
	order          order         // of the objects that are read, then uuids
	descending     bool          // uuids
	exact          bool          // it has no further order: its indexes have no other fields
	places         bool          // its cursors are places in the order
	maxRanges      int           // reads; 0: maxReads
	inTurn         bool          // one read after the other instead: they have no common order
	readsUnmatched bool          // objects are read that don't match
	elements       bool          // an index has several keys of an object
	residual       [][]condition // of each conjunction: the conditions that some objects that are read may not meet
	withDomains    []conjunction // conjunctions
	uses           []indexUse    // of each conjunction: that of the index that is read
	filterIndexes  []Index       // the reads are intersected with these; may be nil
	fingerprint
}

// Plan makes a plan that reads some of these indexes. Errors are errs.Invalid, and say which index would be needed.
func (q Request) Plan(indexes []Index) (*Plan, error) {
	p := &Plan{filter: q.filter, sort: q.sort, conjunctions: q.conjunctions, withDomains: q.withDomains}
	if err := p.choose(indexes); err != nil {
		return nil, err
	}
	p.fingerprint = p.fingerprintOf(q.filterText, q.sortText)
	return p, nil
}

// Reads returns the reads of the list. All reads have its order, and an object may be found by several.
func (p *Plan) Reads() []Read { return p.reads }

// ReadsUnmatched reports whether objects are read that may not match the filter, as many as there are.
func (p *Plan) ReadsUnmatched() bool { return p.readsUnmatched }

// indexes returns the names of the indexes that are read.
func (p *Plan) indexes() []string {
	var names []string
	for _, r := range p.reads {
		if r.index != "" && !slices.Contains(names, r.index) {
			names = append(names, r.index)
		}
	}
	return names
}

// Match reports whether the object meets the filter. The caller must check the objects
// that a driver finds: an index may lag, and its keys have long strings cut off and
// numbers rounded.
func (p *Plan) Match(o object.Object) bool { return p.filter == nil || p.filter.match(o) }

// TopFields are the top-level fields of an object by which the plan matches and orders it.
func (p *Plan) TopFields() []string {
	names := []string{"uuid"}
	add := func(f field) {
		if !slices.Contains(names, f.top) {
			names = append(names, f.top)
		}
	}
	p.filter.eachField(add)
	for _, conditions := range p.conjunctions {
		for _, c := range conditions {
			add(c.field)
		}
	}
	for _, f := range p.order {
		add(f)
	}
	return names
}

// InTurn reports whether the reads are made one after the other. Else they have a common order, in which they are
// merged.
func (p *Plan) InTurn() bool { return p.inTurn }

// Takes reports whether a list whose reads are made in turn has an object from this read: no earlier one finds it.
func (p *Plan) Takes(r Read, o object.Object) bool {
	return slices.IndexFunc(p.conjunctions, func(conditions []condition) bool {
		return !slices.ContainsFunc(conditions, func(c condition) bool { return !c.match(o) })
	}) == r.conjunction
}

// Compare orders two objects as the list does: negative when a comes first.
func (p *Plan) Compare(a, b object.Object) int {
	for _, f := range p.order {
		if c := bytes.Compare(f.part(f.of(a)), f.part(f.of(b))); c != 0 {
			return c
		}
	}
	first, _ := a.Text("uuid")
	second, _ := b.Text("uuid")
	if p.descending {
		return cmp.Compare(second, first)
	}
	return cmp.Compare(first, second)
}

// Reversed returns the plan of the same list in the reverse order. Its cursors are others.
func (p *Plan) Reversed() *Plan {
	r := *p
	r.order, r.descending = p.order.reversed(), !p.descending
	r.reads = make([]Read, len(p.reads))
	for i, read := range p.reads {
		read.descending = !read.descending
		r.reads[len(r.reads)-1-i] = read
	}
	r.fingerprint = p.fingerprintOf("reversed", "")
	return &r
}

func (p *Plan) fingerprintOf(filter, sort string) fingerprint {
	return fingerprintOf(string(p.fingerprint[:])+filter, sort, p.indexes())
}
