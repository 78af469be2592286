package query

import (
	"bytes"
	"cmp"
	"slices"

	"belfry/pkg/store/object"
	"belfry/pkg/store/policy"
)

// Split returns plans that together find whatever p lists of the objects that have one of the values, and
// possibly more of what p lists. An object with several of the values is found by several plans; all have the order
// of p. Split reports false when there is no index for one of the values.
func (p *Plan) Split(values []policy.Value, indexes []Index) ([]*Plan, bool) {
	plans := make([]*Plan, len(values))
	for i, v := range values {
		if plans[i] = p.with(v, indexes); plans[i] == nil {
			return nil, false
		}
	}
	if len(plans) > 0 {
		plans[0].fingerprint = p.fingerprint
		for i, v := range values {
			plans[0].fingerprint = fingerprintOf(string(plans[0].fingerprint[:])+v.Field, string(v.JSON), Index{Name: plans[i].index})
		}
	}
	return plans, true
}

// with returns a plan for the objects of p that have a value; nil without an index.
func (p *Plan) with(v policy.Value, indexes []Index) *Plan {
	narrowed := &Plan{descending: p.descending, conditions: p.conditions, needs: p.needs}
	if v.Field == "uuid" {
		text, _ := object.Text(v.JSON)
		narrowed.only = &text
		return narrowed
	}
	if slices.Contains(p.needs.equal, v.Field) {
		same := *p // the filter decides
		return &same
	}
	n := p.needs
	n.equal = append(slices.Clone(n.equal), v.Field)
	n.sorted = slices.DeleteFunc(slices.Clone(n.sorted), func(field string) bool { return field == v.Field })
	if n.ranged == v.Field {
		n.ranged = ""
	}
	index, ok := choose(slices.DeleteFunc(slices.Clone(indexes), func(i Index) bool {
		return len(i.Fields) > len(n.equal)+len(n.sorted) // the order of further fields differs from one index to another
	}), n)
	if !ok {
		return nil
	}
	narrowed.index = index.Name
	narrowed.bound(index.Fields[:len(n.equal)], n.ranged, v)
	return narrowed
}

// Only returns the one uuid that the plan can find, if there is only one.
func (p *Plan) Only() (uuid string, only bool) {
	if p.only == nil {
		return "", false
	}
	return *p.only, true
}

// Compare orders two objects as the listing does: negative when a comes first.
func (p *Plan) Compare(a, b object.Object) int {
	order := 0
	for _, field := range p.needs.sorted {
		if order = bytes.Compare(EncodePart(a[field]), EncodePart(b[field])); order != 0 {
			break
		}
	}
	if order == 0 {
		first, _ := a.Text("uuid")
		second, _ := b.Text("uuid")
		order = cmp.Compare(first, second)
	}
	if p.descending {
		return -order
	}
	return order
}
