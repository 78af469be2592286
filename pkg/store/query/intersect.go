package query

import (
	"bytes"
	"slices"

	"belfry/pkg/store/driver"
)

// The most indexes that a range is intersected with, and the most keys of one of them of which an object has one.
const (
	maxFilters     = 3
	maxFilterParts = 8
)

// indexFilter is keys in another index of which an object has one. The parts after the leading ones are alike in
// both indexes, so that their keys are in the same order.
type indexFilter struct {
	index Index
	equal [][][]byte // any of these leading parts
}

// Intersecting returns the plan for a backend that intersects several indexes by their keys. Its reads
// are those of p, in the same order, without objects that another index shows not to match.
//
// The cursors of one read are those of p. Those of several are not: a read of p would find again objects that are on an
// earlier page because another read has found it.
func (p *Plan) Intersecting(indexes []Index) *Plan {
	if len(p.uses) == 0 || !p.readsUnmatched {
		return p
	}
	n := *p
	n.reads, n.residual, n.readsUnmatched, n.elements, n.filterIndexes = nil, nil, false, false, indexes
	if n.setReads(p.uses) != nil || !n.Intersects() {
		return p
	}
	if len(n.reads) > 1 {
		var names []string
		for _, r := range n.reads {
			for _, o := range r.filters {
				names = append(names, o.index.Name)
			}
		}
		n.fingerprint = fingerprintOf(string(n.fingerprint[:]), "intersecting", names)
	}
	return &n
}

// Intersects reports whether some reads are intersected.
func (p *Plan) Intersects() bool {
	return slices.ContainsFunc(p.reads, func(r Read) bool { return len(r.filters) > 0 })
}

// Conditions returns the further conditions of the objects of the read; the read is then to be intersected.
func (r Read) Conditions() []driver.KeyCondition {
	var all []driver.KeyCondition
	for _, o := range r.filters {
		all = append(all, driver.KeyCondition{Index: o.index.Name, Equal: o.equal})
	}
	return all
}

// intersections returns the keys of the conjunction in the indexes that hold most of the conditions that are not held,
// and marks these.
func (u indexUse) intersections(c conjunction, held []bool, indexes []Index) (all []indexFilter) {
	for len(all) < maxFilters && u.index.Name != "" {
		var best indexFilter
		var bestHeld []bool
		for _, index := range indexes {
			o, nowHeld, ok := u.intersection(c, held, index)
			if !ok || countTrue(nowHeld) == countTrue(held) ||
				bestHeld != nil && countTrue(nowHeld) < countTrue(bestHeld) {
				continue
			}
			// Of those that hold as many, the one whose keys have more fields has the fewest: with the owner's field,
			// those of the owner.
			if countTrue(nowHeld) > countTrue(bestHeld) || len(o.equal[0]) > len(best.equal[0]) {
				best, bestHeld = o, nowHeld
			}
		}
		if bestHeld == nil {
			break
		}
		copy(held, bestHeld)
		all = append(all, best)
	}
	return all
}

// intersection returns the keys of the conjunction in an index whose leading fields are held to points and whose
// further ones are those of the reads, with the conditions that are then held.
func (u indexUse) intersection(c conjunction, held []bool, index Index) (o indexFilter, nowHeld []bool, ok bool) {
	fields, rest := index.fields(), u.fields[u.equal:]
	equal := len(fields) - len(rest)
	if equal < 1 || !rest.isPrefixOf(fields[equal:]) {
		return o, nil, false
	}
	o, nowHeld = indexFilter{index: index, equal: [][][]byte{nil}}, slices.Clone(held)
	for _, f := range fields[:equal] {
		var parts [][]byte
		switch i := c.element(f.name, held); {
		case f.elements && i >= 0:
			parts = c.conditions[i].domain().points()
		case !f.elements && c.isPoints(f.name):
			parts = c.points(f.name)
		default:
			return o, nil, false
		}
		c.markHeld(nowHeld, f)
		if o.equal = product(o.equal, f.keyParts(parts)); len(o.equal) > maxFilterParts {
			return o, nil, false
		}
	}
	return o, nowHeld, len(o.equal) > 0
}

func countTrue(held []bool) (n int) {
	for _, is := range held {
		if is {
			n++
		}
	}
	return n
}

// unionOfFilters returns the filters of the objects of either of two conjunctions, which share a read.
func unionOfFilters(a, b []indexFilter) []indexFilter {
	sameParts := func(a, b [][]byte) bool { return slices.EqualFunc(a, b, bytes.Equal) }
	if slices.EqualFunc(a, b, func(a, b indexFilter) bool {
		return a.index.Name == b.index.Name && slices.EqualFunc(a.equal, b.equal, sameParts)
	}) {
		return a
	}
	if len(a) != 1 || len(b) != 1 || a[0].index.Name != b[0].index.Name {
		return nil
	}
	joined := indexFilter{index: a[0].index, equal: slices.Clone(a[0].equal)}
	for _, parts := range b[0].equal {
		if !slices.ContainsFunc(joined.equal, func(have [][]byte) bool { return sameParts(have, parts) }) {
			joined.equal = append(joined.equal, parts)
		}
	}
	if len(joined.equal) > maxFilterParts {
		return nil
	}
	return []indexFilter{joined}
}
