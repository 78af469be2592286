package query

import (
	"bytes"
	"slices"

	"belfry/pkg/store/driver"
)

// The most indexes that a range is intersected with, and the most keys of one of them of which an object has one.
const (
	maxOthers     = 3
	maxOtherParts = 8
)

// other is keys in another index of which an object has one. What follows the leading parts is alike in both
// indexes, so that their keys are in the same order.
type other struct {
	index Index
	equal [][][]byte // any of these leading parts
}

// Intersecting returns the plan for a backend that finds what several indexes have in common by their keys. Its reads are
// those of p, in the same order, without objects that another index shows not to match.
//
// The cursors of one read are those of p. Those of several are not: a read of p would find again what is on an earlier page
// because another read has found it.
func (p *Plan) Intersecting(indexes []Index) *Plan {
	if len(p.ways) == 0 || !p.sifts {
		return p
	}
	n := *p
	n.reads, n.unheld, n.sifts, n.elements, n.others = nil, nil, false, false, indexes
	if n.read(p.all, p.ways) != nil || !n.Intersects() {
		return p
	}
	if len(n.reads) > 1 {
		var names []string
		for _, r := range n.reads {
			for _, o := range r.others {
				names = append(names, o.index.Name)
			}
		}
		n.fingerprint = fingerprintOf(string(n.fingerprint[:]), "intersecting", names)
	}
	return &n
}

// Intersects reports whether some of what is read is intersected.
func (p *Plan) Intersects() bool {
	return slices.ContainsFunc(p.reads, func(r Read) bool { return len(r.others) > 0 })
}

// Conditions returns what else the objects of the read have in common; the read is then to be intersected.
func (r Read) Conditions() []driver.KeyCondition {
	var all []driver.KeyCondition
	for _, o := range r.others {
		all = append(all, driver.KeyCondition{Index: o.index.Name, Equal: o.equal})
	}
	return all
}

// others returns the keys of the conjunction in the indexes that hold most of the conditions that are not held, and marks these.
func (w way) others(c conjunction, held []bool, indexes []Index) (all []other) {
	for len(all) < maxOthers && w.index.Name != "" {
		var best other
		var bestHeld []bool
		for _, index := range indexes {
			o, nowHeld, ok := w.other(c, held, index)
			if !ok || count(nowHeld) == count(held) || bestHeld != nil && count(nowHeld) < count(bestHeld) {
				continue
			}
			// Of those that hold as many, the one whose keys have more fields has the fewest: with the owner's field, those of the owner.
			if count(nowHeld) > count(bestHeld) || len(o.equal[0]) > len(best.equal[0]) {
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

// other returns the keys of the conjunction in an index whose leading fields are held to points and whose further ones are those
// of what is read, with what is then held.
func (w way) other(c conjunction, held []bool, index Index) (o other, nowHeld []bool, ok bool) {
	fields, rest := index.fields(), w.fields[w.equal:]
	equal := len(fields) - len(rest)
	if equal < 1 || !rest.begins(fields[equal:]) {
		return o, nil, false
	}
	o, nowHeld = other{index: index, equal: [][][]byte{nil}}, slices.Clone(held)
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
		c.hold(nowHeld, f)
		if o.equal = product(o.equal, f.keyParts(parts)); len(o.equal) > maxOtherParts {
			return o, nil, false
		}
	}
	return o, nowHeld, len(o.equal) > 0
}

func count(held []bool) (n int) {
	for _, is := range held {
		if is {
			n++
		}
	}
	return n
}

// either returns what the objects of either of two conjunctions have in common, which share what is read.
func either(a, b []other) []other {
	sameParts := func(a, b [][]byte) bool { return slices.EqualFunc(a, b, bytes.Equal) }
	if slices.EqualFunc(a, b, func(a, b other) bool {
		return a.index.Name == b.index.Name && slices.EqualFunc(a.equal, b.equal, sameParts)
	}) {
		return a
	}
	if len(a) != 1 || len(b) != 1 || a[0].index.Name != b[0].index.Name {
		return nil
	}
	joined := other{index: a[0].index, equal: slices.Clone(a[0].equal)}
	for _, parts := range b[0].equal {
		if !slices.ContainsFunc(joined.equal, func(have [][]byte) bool { return sameParts(have, parts) }) {
			joined.equal = append(joined.equal, parts)
		}
	}
	if len(joined.equal) > maxOtherParts {
		return nil
	}
	return []other{joined}
}
