package query

import (
	"errors"
	"slices"
	"strings"

	"belfry/pkg/errs"
)

// indexUse is how an index supports a conjunction. Without an index the conjunction has uuids, or no condition
// at all.
type indexUse struct {
	index    Index
	fields   order
	equal    int  // leading fields that are held to points
	ranged   bool // the next one is held to ranges
	backward bool // the index is read from its end
}

// remainingOrder is the order of the objects that are read.
func (u indexUse) remainingOrder() order {
	if u.backward {
		return u.fields[u.equal:].reversed()
	}
	return u.fields[u.equal:]
}

// boundFields is how many leading fields are held to the conditions on them.
func (u indexUse) boundFields() int {
	if u.ranged {
		return u.equal + 1
	}
	return u.equal
}

func totalBoundFields(uses []indexUse) int {
	n := 0
	for _, u := range uses {
		n += u.boundFields()
	}
	return n
}

// choose chooses the indexes that are read: those that hold most fields to the conditions.
func (p *Plan) choose(indexes []Index) error {
	all := p.withDomains
	if len(all) == 0 {
		return nil // it lists nothing
	}
	var best []indexUse
	take := func(uses []indexUse, o order) {
		if uses != nil && (best == nil || totalBoundFields(uses) > totalBoundFields(best)) {
			best, p.order = uses, o
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
		return p.setReads(best)
	}
	p.descending = slices.ContainsFunc(best, func(u indexUse) bool { return u.backward })
	for _, f := range best[0].remainingOrder() {
		if p.order.index(f.name) < 0 {
			p.order = append(p.order[:len(p.order):len(p.order)], f)
		}
	}
	return p.setReads(best)
}

// orders returns the orders that the list may have: the one that was asked for, else that of uuids, of an index, or of
// a field with ranges.
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

// chooseOne returns the use, for each conjunction, of the smallest index that supports all conjunctions, the first of
// equals, in an order that begins with o; nil for none.
func (p *Plan) chooseOne(all []conjunction, o order, indexes []Index) (best []indexUse) {
	switch {
	case len(o) > 0:
	case len(all) == 1 && len(all[0].conditions) == 0:
		return []indexUse{{}}
	case len(p.sort) > 0:
		return nil // by uuid, which no index has
	}
	for _, index := range indexes {
		for _, backward := range []bool{false, true} {
			uses := make([]indexUse, len(all))
			ok := true
			for i, c := range all {
				u, supports := c.use(index, o, backward, indexes)
				uses[i] = u
				ok = ok && supports && u.equal == uses[0].equal
			}
			if ok && (best == nil || isBetter(uses, best)) {
				best = uses
			}
			if ok {
				break
			}
		}
	}
	return best
}

// isBetter reports whether an index holds more fields than another one, or as many and is smaller.
func isBetter(uses, than []indexUse) bool {
	bound, before := totalBoundFields(uses), totalBoundFields(than)
	return bound > before || bound == before && len(uses[0].index.Fields) < len(than[0].index.Fields)
}

// chooseEach returns for each conjunction the index that holds most fields, in the order o, which all have in common.
// It returns nil if a conjunction has no such index.
func chooseEach(all []conjunction, o order, indexes []Index) []indexUse {
	for _, backward := range []bool{false, true} {
		uses := make([]indexUse, 0, len(all))
		for _, c := range all {
			if u, ok := c.bestUse(o, backward, indexes); ok {
				uses = append(uses, u)
			}
		}
		if len(uses) == len(all) {
			return uses
		}
	}
	return nil
}

// chooseInTurn returns for each conjunction the index that holds most fields, in any order. Objects that meet one
// are listed before those that meet the next. It returns nil if a conjunction has no index.
func (p *Plan) chooseInTurn(all []conjunction, indexes []Index) []indexUse {
	uses := make([]indexUse, len(all))
	for i, c := range all {
		one := p.chooseOne(all[i:i+1], nil, indexes)
		if c.isPoints("uuid") {
			one = []indexUse{{}}
		}
		if one == nil {
			return nil
		}
		uses[i] = one[0]
	}
	p.inTurn = true
	return uses
}

// bestUse returns the index that holds most fields, the first of equals, in the order o and no further one.
func (c conjunction) bestUse(o order, backward bool, indexes []Index) (best indexUse, found bool) {
	if c.isPoints("uuid") {
		return indexUse{backward: backward}, true
	}
	for _, index := range indexes {
		u, ok := c.use(index, o, backward, indexes)
		exact := !slices.ContainsFunc(u.remainingOrder(), func(f field) bool { return o.index(f.name) < 0 })
		if ok && exact && (!found || u.boundFields() > best.boundFields()) {
			best, found = u, true
		}
	}
	return best, found
}

// use returns how an index supports the conjunction in an order that begins with o, if it does.
func (c conjunction) use(index Index, o order, backward bool, indexes []Index) (u indexUse, ok bool) {
	u = indexUse{index: index, fields: index.fields(), backward: backward}
	for u.equal < len(u.fields) && c.isPoints(u.fields[u.equal].name) {
		u.equal++
	}
	if u.equal < len(u.fields) && index.HasElements() {
		return u, false // an object may have any number of keys
	}
	rest := u.remainingOrder()
	sorted := o.without(func(name string) bool { return u.fields[:u.equal].index(name) >= 0 })
	u.ranged = len(rest) > 0 && c.hasDomain(rest[0].name)
	if !sorted.isPrefixOf(rest) || u.boundFields() == 0 && len(c.conditions) > 0 {
		return u, false
	}
	for _, name := range c.fields {
		if u.fields.index(name) < 0 && !isIndexed(indexes, name) {
			return u, false
		}
	}
	return u, true
}

// isIndexed reports whether one of the indexes begins with a field, or has it as the elements of an array.
func isIndexed(indexes []Index, name string) bool {
	return name == "uuid" || slices.ContainsFunc(indexes, func(i Index) bool {
		at := i.fields().index(name)
		return at == 0 || at > 0 && i.fields()[at].elements
	})
}

// errUnsupported returns the error of a list that no index supports.
func (p *Plan) errUnsupported(all []conjunction, indexes []Index) error {
	for _, c := range all {
		_, forward := c.bestUse(p.sort, false, indexes)
		_, backward := c.bestUse(p.sort, true, indexes)
		if forward || backward || len(p.sort) == 0 && p.chooseOne([]conjunction{c}, nil, indexes) != nil {
			continue
		}
		for _, name := range c.fields {
			switch {
			case c.isPoints(name):
			case parseField(name).elements && len(c.fields) == 1:
				return errs.New(errs.Invalid,
					"filter: no index supports !(... in %s) by itself: join it by && with a condition "+
						"that an index supports", strings.TrimSuffix(name, "[]"))
			case len(p.sort) > 0 && p.sort.index(name) != 0 && !slices.ContainsFunc(c.fields, c.isPoints):
				return errs.New(errs.Invalid,
					"sort: with a range on %s in the filter the order begins with %s, not with %s",
					name, name, p.sort[0].name)
			}
		}
		return c.errUnsupported(p.sort, indexes)
	}
	m := &missingIndexError{err: errs.New(errs.Invalid,
		"sort: the indexes that support the alternatives of the filter "+
			"have no common order: declare one on (%s)", all[0].neededIndex(p.sort).text())}
	for _, c := range all {
		m.fields = append(m.fields, c.neededIndex(p.sort))
	}
	return m
}

// errUnsupported names the index that is missing, and not those that there are, of which a store can have many.
func (c conjunction) errUnsupported(o order, indexes []Index) error {
	none := ""
	if len(indexes) == 0 {
		none = "; none is declared"
	}
	needs := c.neededIndex(o)
	return &missingIndexError{errs.New(errs.Invalid, "no index of this store supports the listing: one on (%s) is "+
		"needed%s", needs.text(), none), []order{needs}}
}

// missingIndexError is the error of a list that would be supported if indexes were declared.
type missingIndexError struct {
	err    *errs.Error
	fields []order // of each index
}

func (m *missingIndexError) Error() string { return m.err.Error() }

// Unwrap returns the error for clients.
func (m *missingIndexError) Unwrap() error { return m.err }

// maxFields is how many fields an index has at most.
const maxFields = 4

// MissingIndexes returns the indexes of which an error of Parse says that one has to be declared; nil for another
// error. With them the list may need others.
func MissingIndexes(err error) (all []Index) {
	var m *missingIndexError
	if !errors.As(err, &m) {
		return nil
	}
	for _, fields := range m.fields {
		index := NewIndex(fields.names())
		isSame := func(i Index) bool { return i.Name == index.Name }
		if len(fields) > 0 && len(fields) <= maxFields && !slices.ContainsFunc(all, isSame) {
			all = append(all, index)
		}
	}
	return all
}
