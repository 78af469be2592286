// Package query turns a listing's filter and sort order into a question that
// one declared index supports, so the cost of a listing is proportional to its
// result. A listing that no index supports is rejected, never executed by a scan.
//
// A filter is a conjunction in a subset of CEL: field == literal, <, <=, >, >=
// (either side may be the field) and field.startsWith("..."), joined by &&.
// Fields are top-level ones; one whose name is no CEL identifier is written
// object["first-name"]. Literals are strings, numbers, true, false and null.
//
// An index supports conditions of equality on its leading fields, then a range
// or a prefix on the next one, in the order of those that follow. A comparison
// matches values of the literal's type only: year > 5 is about numbers, and
// about no object that lacks the field.
package query

import (
	"bytes"
	"slices"
	"strings"

	"belfry/pkg/errs"
	"belfry/pkg/store/driver"
	"belfry/pkg/store/object"
	"belfry/pkg/store/policy"
)

// Plan is a listing that an index supports. It is immutable.
type Plan struct {
	index      string // "" scans in the order of uuids
	equal      [][]byte
	from, to   []byte
	descending bool
	conditions []condition
	needs      needs   // of an index
	only       *string // not nil: there is at most the object with this uuid
	fingerprint
}

// Parse makes a plan for a filter and a sort order ("year", "-year",
// "author,year"), each of which may be empty; when both are, or the order is
// "uuid", objects come in the order of their uuids. Errors are errs.Invalid
// and say what isn't supported, or which index would be needed.
func Parse(filter, sort string, indexes []Index) (*Plan, error) {
	conditions, err := parseFilter(filter)
	if err != nil {
		return nil, err
	}
	order, err := parseSort(sort)
	if err != nil {
		return nil, err
	}
	if len(conditions) == 0 && order.isPrimary() {
		return &Plan{fingerprint: fingerprintOf(filter, sort, Index{})}, nil
	}
	n, err := needsOf(conditions, order)
	if err != nil {
		return nil, err
	}
	index, ok := choose(indexes, n)
	if !ok {
		return nil, unanswered(n, indexes)
	}
	p := &Plan{
		index:       index.Name,
		descending:  n.descending,
		conditions:  conditions,
		needs:       n,
		fingerprint: fingerprintOf(filter, sort, index),
	}
	p.bound(index.Fields[:len(n.equal)], n.ranged)
	return p, nil
}

// Query is what to ask the driver, without After and Limit; or, when scan is
// true, that Scan is to be asked instead.
func (p *Plan) Query() (q driver.Query, scan bool) {
	if p.index == "" {
		return driver.Query{}, true
	}
	return driver.Query{Index: p.index, Equal: p.equal, From: p.from, To: p.to, Descending: p.descending}, false
}

// Index returns the name of the index that is read; "" for none.
func (p *Plan) Index() string { return p.index }

// Fields returns the fields by which the listing is filtered and sorted.
func (p *Plan) Fields() []string { return p.needs.fields() }

// Match reports whether the object meets the filter. What a driver finds must
// be checked: an index may lag, and its keys hold long strings cut off and
// numbers rounded.
func (p *Plan) Match(o object.Object) bool {
	for _, c := range p.conditions {
		if !c.match(o[c.field]) {
			return false
		}
	}
	return true
}

// bound sets the query's bounds: those that all the conditions and the values share. They may
// let in more than the conditions do, never less.
func (p *Plan) bound(equal []string, ranged string, values ...policy.Value) {
	for _, field := range equal {
		if i := slices.IndexFunc(values, func(v policy.Value) bool { return v.Field == field }); i >= 0 {
			p.equal = append(p.equal, EncodePart(values[i].JSON))
			continue
		}
		i := slices.IndexFunc(p.conditions, func(c condition) bool { return c.field == field && c.op == equals })
		p.equal = append(p.equal, EncodePart(p.conditions[i].literal))
	}
	if ranged == "" {
		return
	}
	for _, c := range p.conditions {
		if c.field != ranged {
			continue
		}
		from, to := c.bounds()
		if p.from == nil || bytes.Compare(from, p.from) > 0 {
			p.from = from
		}
		if p.to == nil || bytes.Compare(to, p.to) < 0 && !bytes.HasPrefix(p.to, to) || bytes.HasPrefix(to, p.to) {
			p.to = to
		}
	}
	if bytes.Compare(p.from, p.to) > 0 && !bytes.HasPrefix(p.from, p.to) {
		// Nothing meets the conditions: ask for as little as possible rather
		// than for a range that ends before it begins.
		p.to = p.from
	}
}

// needs is what an index must offer.
type needs struct {
	equal      []string // leading fields, in any order
	ranged     string   // the field after them; "" for none
	sorted     []string // the fields after equal, in this order
	descending bool
}

func needsOf(conditions []condition, o order) (needs, error) {
	var n needs
	for _, c := range conditions {
		if c.op == equals && !slices.Contains(n.equal, c.field) {
			n.equal = append(n.equal, c.field)
		}
	}
	for _, c := range conditions {
		switch {
		case slices.Contains(n.equal, c.field), c.field == n.ranged:
		case n.ranged != "":
			return n, errs.New(errs.Invalid, "filter: ranges on two fields (%s and %s) are not supported by any index; one range and any number of == can", n.ranged, c.field)
		default:
			n.ranged = c.field
		}
	}
	o = o.without(n.equal)
	var err error
	if n.descending, err = o.direction(); err != nil {
		return n, err
	}
	n.sorted = o.fields()
	switch {
	case n.ranged == "":
	case len(n.sorted) == 0:
		n.sorted = []string{n.ranged}
	case n.sorted[0] != n.ranged:
		return n, errs.New(errs.Invalid, "sort: with a range on %s in the filter the order begins with %s, not with %s", n.ranged, n.ranged, n.sorted[0])
	}
	return n, nil
}

// fields are those of the smallest index that supports the listing.
func (n needs) fields() []string { return slices.Concat(n.equal, n.sorted) }

func (n needs) answeredBy(index Index) bool {
	lead, all := len(n.equal), len(n.equal)+len(n.sorted)
	if len(index.Fields) < all {
		return false
	}
	for _, field := range index.Fields[:lead] {
		if !slices.Contains(n.equal, field) {
			return false
		}
	}
	return slices.Equal(index.Fields[lead:all], n.sorted)
}

// choose returns the smallest index that supports the listing, the first of equals.
func choose(indexes []Index, n needs) (best Index, found bool) {
	for _, index := range indexes {
		if n.answeredBy(index) && (!found || len(index.Fields) < len(best.Fields)) {
			best, found = index, true
		}
	}
	return best, found
}

func unanswered(n needs, indexes []Index) error {
	declared := make([]string, 0, len(indexes))
	for _, index := range indexes {
		declared = append(declared, "("+strings.Join(index.Fields, ", ")+")")
	}
	have := "none is declared"
	if len(declared) > 0 {
		have = "declared are " + strings.Join(declared, " and ")
	}
	return errs.New(errs.Invalid, "no index of this store supports the listing: one on (%s) is needed; %s", strings.Join(n.fields(), ", "), have)
}
