package query

import (
	"slices"
	"strings"

	"belfry/pkg/errs"
)

// way is how an index supports a conjunction. Without an index the conjunction has uuids, or no condition
// at all.
type way struct {
	index    Index
	fields   order
	equal    int  // leading fields that are held to points
	ranged   bool // the next one is held to ranges
	backward bool // the index is read from its end
}

// rest is the order of what is read.
func (w way) rest() order {
	if w.backward {
		return w.fields[w.equal:].reversed()
	}
	return w.fields[w.equal:]
}

// covered is how many leading fields are held to the conditions on them.
func (w way) covered() int {
	if w.ranged {
		return w.equal + 1
	}
	return w.equal
}

func covered(ways []way) int {
	n := 0
	for _, w := range ways {
		n += w.covered()
	}
	return n
}

// plan chooses the indexes that are read: those that hold most fields to the conditions.
func (p *Plan) plan(indexes []Index) error {
	all := make([]conjunction, len(p.conjunctions))
	for i, conditions := range p.conjunctions {
		all[i] = newConjunction(conditions)
	}
	if len(all) == 0 {
		return nil // it lists nothing
	}
	var best []way
	take := func(ways []way, o order) {
		if ways != nil && (best == nil || covered(ways) > covered(best)) {
			best, p.order = ways, o
		}
	}
	for _, o := range p.orders(all) {
		if !p.exact {
			take(p.chooseOne(all, o, indexes), o)
		}
		if best != nil && len(all) == 1 {
			break // nothing holds more fields of one conjunction
		}
		take(chooseEach(all, o, indexes), o)
	}
	if best == nil && len(p.sort) == 0 {
		best = p.chooseInTurn(all, indexes)
	}
	if best == nil {
		return p.errUnsupported(all, indexes)
	}
	if p.inTurn {
		return p.read(all, best)
	}
	p.descending = slices.ContainsFunc(best, func(w way) bool { return w.backward })
	for _, f := range best[0].rest() {
		if p.order.index(f.name) < 0 {
			p.order = append(p.order[:len(p.order):len(p.order)], f)
		}
	}
	return p.read(all, best)
}

// orders returns the orders that the list may have: the one that was asked for, else that of uuids, of an index, or of a
// field with ranges.
func (p *Plan) orders(all []conjunction) []order {
	if !p.sort.isPrimary() {
		return []order{p.sort}
	}
	orders := []order{nil}
	if len(p.sort) > 0 {
		return orders
	}
	for _, c := range all {
		for _, one := range c.conditions {
			if !one.field.elements && !c.isPoints(one.field.name) {
				orders = append(orders, order{one.field})
			}
		}
	}
	return orders
}

// chooseOne returns the ways of the smallest index that supports all conjunctions, the first of equals, in an order
// that begins with o; nil for none.
func (p *Plan) chooseOne(all []conjunction, o order, indexes []Index) (best []way) {
	switch {
	case len(o) > 0:
	case len(all) == 1 && len(all[0].conditions) == 0:
		return []way{{}}
	case len(p.sort) > 0:
		return nil // by uuid, which no index has
	}
	for _, index := range indexes {
		for _, backward := range []bool{false, true} {
			ways := make([]way, len(all))
			ok := true
			for i, c := range all {
				w, supports := c.way(index, o, backward, indexes)
				ways[i] = w
				ok = ok && supports && w.equal == ways[0].equal
			}
			if ok && (best == nil || covered(ways) > covered(best) || covered(ways) == covered(best) && len(index.Fields) < len(best[0].index.Fields)) {
				best = ways
			}
			if ok {
				break
			}
		}
	}
	return best
}

// chooseEach returns for each conjunction the index that holds most fields, in the order o, which all have in common;
// nil when there is none for one of them.
func chooseEach(all []conjunction, o order, indexes []Index) []way {
	for _, backward := range []bool{false, true} {
		ways := make([]way, 0, len(all))
		for _, c := range all {
			if w, ok := c.best(o, backward, indexes); ok {
				ways = append(ways, w)
			}
		}
		if len(ways) == len(all) {
			return ways
		}
	}
	return nil
}

// chooseInTurn returns for each conjunction the index that holds most fields, in any order: what meets one is listed
// before what meets the next; nil when there is none for one of them.
func (p *Plan) chooseInTurn(all []conjunction, indexes []Index) []way {
	ways := make([]way, len(all))
	for i, c := range all {
		one := p.chooseOne(all[i:i+1], nil, indexes)
		if c.isPoints("uuid") {
			one = []way{{}}
		}
		if one == nil {
			return nil
		}
		ways[i] = one[0]
	}
	p.inTurn = true
	return ways
}

// best returns the index that holds most fields, the first of equals, in the order o and no further one.
func (c conjunction) best(o order, backward bool, indexes []Index) (best way, found bool) {
	if c.isPoints("uuid") {
		return way{backward: backward}, true
	}
	for _, index := range indexes {
		w, ok := c.way(index, o, backward, indexes)
		exact := !slices.ContainsFunc(w.rest(), func(f field) bool { return o.index(f.name) < 0 })
		if ok && exact && (!found || w.covered() > best.covered()) {
			best, found = w, true
		}
	}
	return best, found
}

// way returns how an index supports the conjunction in an order that begins with o, if it does.
func (c conjunction) way(index Index, o order, backward bool, indexes []Index) (w way, ok bool) {
	w = way{index: index, fields: index.fields(), backward: backward}
	for w.equal < len(w.fields) && c.isPoints(w.fields[w.equal].name) {
		w.equal++
	}
	if w.equal < len(w.fields) && index.HasElements() {
		return w, false // an object may have any number of keys
	}
	rest := w.rest()
	sorted := o.without(func(name string) bool { return w.fields[:w.equal].index(name) >= 0 })
	w.ranged = len(rest) > 0 && c.hasDomain(rest[0].name)
	if !sorted.begins(rest) || w.covered() == 0 && len(c.conditions) > 0 {
		return w, false
	}
	for _, name := range c.fields {
		if w.fields.index(name) < 0 && !begins(indexes, name) {
			return w, false
		}
	}
	return w, true
}

// begins reports whether one of the indexes begins with a field, or has it as the elements of an array.
func begins(indexes []Index, name string) bool {
	return name == "uuid" || slices.ContainsFunc(indexes, func(i Index) bool {
		at := i.fields().index(name)
		return at == 0 || at > 0 && i.fields()[at].elements
	})
}

// errUnsupported returns the error of a list that no index supports.
func (p *Plan) errUnsupported(all []conjunction, indexes []Index) error {
	for _, c := range all {
		_, forward := c.best(p.sort, false, indexes)
		_, backward := c.best(p.sort, true, indexes)
		if forward || backward || len(p.sort) == 0 && p.chooseOne([]conjunction{c}, nil, indexes) != nil {
			continue
		}
		for _, name := range c.fields {
			switch {
			case c.isPoints(name):
			case parseField(name).elements && len(c.fields) == 1:
				return errs.New(errs.Invalid, "filter: no index supports !(... in %s) alone: join it by && with a condition that an index supports", strings.TrimSuffix(name, "[]"))
			case len(p.sort) > 0 && p.sort.index(name) != 0 && !slices.ContainsFunc(c.fields, c.isPoints):
				return errs.New(errs.Invalid, "sort: with a range on %s in the filter the order begins with %s, not with %s", name, name, p.sort[0].name)
			}
		}
		return c.errUnsupported(p.sort, indexes)
	}
	m := &missing{err: errs.New(errs.Invalid, "sort: the indexes that support the alternatives of the filter have no common order: declare one on (%s)", all[0].needs(p.sort).text())}
	for _, c := range all {
		m.needs = append(m.needs, c.needs(p.sort))
	}
	return m
}

// errUnsupported names the index that is missing, and not those that there are, of which a store can have many.
func (c conjunction) errUnsupported(o order, indexes []Index) error {
	none := ""
	if len(indexes) == 0 {
		none = "; none is declared"
	}
	needs := c.needs(o)
	return &missing{errs.New(errs.Invalid, "no index of this store supports the listing: one on (%s) is needed%s", needs.text(), none), []order{needs}}
}
