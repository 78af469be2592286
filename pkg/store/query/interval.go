package query

import (
	"bytes"
	"slices"
)

// cut is a place between the parts of keys: before or after one.
type cut struct {
	part  []byte
	after bool
}

// bound returns the cut as a bound of a range of parts. A part with a NUL appended sorts
// between that part and all that come after it, for no stored string has one.
func (c cut) bound() []byte {
	if c.after {
		return append(slices.Clone(c.part), 0)
	}
	return c.part
}

func (c cut) compare(d cut) int { return bytes.Compare(c.bound(), d.bound()) }

// minCut is before all parts.
func minCut() cut { return cut{part: []byte{partAbsent}} }

// maxCut is after all parts.
func maxCut() cut { return cut{part: []byte{partComposite + 1}} }

// interval is the parts between two cuts.
type interval struct{ from, to cut }

// point is the interval of one part.
func point(part []byte) interval {
	return interval{from: cut{part: part}, to: cut{part: part, after: true}}
}

// typed is the interval of all parts of a type.
func typed(kind byte) interval {
	return interval{from: cut{part: []byte{kind}}, to: cut{part: []byte{kind + 1}}}
}

// domain is a set of parts: intervals in order that don't touch.
type domain []interval

// allParts is all parts.
func allParts() interval { return interval{from: minCut(), to: maxCut()} }

func union(d ...interval) domain {
	d = slices.DeleteFunc(slices.Clone(d), func(i interval) bool { return i.from.compare(i.to) >= 0 })
	slices.SortFunc(d, func(a, b interval) int { return a.from.compare(b.from) })
	var all domain
	for _, i := range d {
		if n := len(all); n > 0 && all[n-1].to.compare(i.from) >= 0 {
			if all[n-1].to.compare(i.to) < 0 {
				all[n-1].to = i.to
			}
			continue
		}
		all = append(all, i)
	}
	return all
}

func (d domain) intersect(e domain) domain {
	var all []interval
	for len(d) > 0 && len(e) > 0 {
		i := d[0]
		if i.from.compare(e[0].from) < 0 {
			i.from = e[0].from
		}
		if i.to.compare(e[0].to) > 0 {
			i.to = e[0].to
			e = e[1:]
		} else {
			d = d[1:]
		}
		all = append(all, i)
	}
	return union(all...)
}

// points returns the parts of a set that has only a few.
func (d domain) points() [][]byte {
	parts := make([][]byte, len(d))
	for i, in := range d {
		parts[i] = in.from.part
	}
	return parts
}

// has reports whether a part is in the set.
func (d domain) has(part []byte) bool {
	at := cut{part: part}
	return slices.ContainsFunc(d, func(i interval) bool { return i.from.compare(at) <= 0 && at.compare(i.to) < 0 })
}

func (d domain) complement() domain {
	var all []interval
	at := minCut()
	for _, i := range d {
		all = append(all, interval{at, i.from})
		at = i.to
	}
	return union(append(all, interval{at, maxCut()})...)
}

// bounds returns the bounds of an interval of a field's parts; nil for none.
func (i interval) bounds(descending bool) (from, to []byte) {
	if descending {
		return i.inverted()
	}
	if i.from.compare(minCut()) > 0 {
		from = i.from.bound()
	}
	if i.to.compare(maxCut()) < 0 {
		to = i.to.bound()
	}
	return from, to
}

// inverted returns the bounds of inverted parts: what is before a cut comes after its
// inversion.
func (i interval) inverted() (from, to []byte) {
	if i.to.compare(maxCut()) < 0 {
		from = i.to.inverted()
	}
	if i.from.compare(minCut()) > 0 {
		to = i.from.inverted()
	}
	return from, to
}

// inverted returns what is above the inversions of all parts that are after the cut, and not above
// those of parts before it.
func (c cut) inverted() []byte {
	switch {
	case c.after:
		return invert(c.part)
	case len(c.part) == 1: // a type
		return []byte{^c.part[0] + 1}
	default:
		return append(invert(c.part), 0)
	}
}
