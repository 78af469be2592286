package query

import (
	"bytes"
	"slices"

	"belfry/pkg/store/driver"
)

// Read is a range of an index, or of the store, that a list reads.
type Read struct {
	index       string // "" scans in the order of uuids
	equal       [][]byte
	from, to    []byte
	descending  bool
	conjunction int // of the plan

	fields order    // of the index
	span   interval // of the field after the equal ones, if it is ranged
	ranged bool

	only   *string // not nil: there is at most the object with this uuid
	search *Search // not nil: objects are found by words instead
}

// Query is what to ask the driver, without After and Limit; or, when scan is
// true, that Scan is to be asked instead, or ScanBackward if the query is descending.
func (r Read) Query() (q driver.Query, scan bool) {
	if r.index == "" {
		return driver.Query{Descending: r.descending}, true
	}
	return driver.Query{Index: r.index, Equal: r.equal, From: r.from, To: r.to, Descending: r.descending}, false
}

// Only returns the one uuid that the read can find, if there is only one.
func (r Read) Only() (uuid string, only bool) {
	if r.only == nil {
		return "", false
	}
	return *r.only, true
}

// read sets what is read in these ways.
func (p *Plan) read(all []conjunction, ways []way) error {
	for i, w := range ways {
		unheld := w.unheld(all[i])
		p.unheld = append(p.unheld, unheld)
		p.sifts, p.elements = p.sifts || len(unheld) > 0, p.elements || w.index.HasElements()
		reads, err := w.reads(all[i])
		if err != nil {
			return err
		}
		for _, r := range reads {
			r.conjunction = i
			if p.inTurn || !slices.ContainsFunc(p.reads, r.same) {
				p.reads = append(p.reads, r)
			}
		}
	}
	if len(p.reads) > maxReads {
		return errTooMany()
	}
	return nil
}

// same reports whether another read of the plan finds the same.
func (r Read) same(o Read) bool {
	a, _ := r.Only()
	b, _ := o.Only()
	return a == b && r.index == o.index && slices.EqualFunc(r.equal, o.equal, bytes.Equal) && bytes.Equal(r.from, o.from) && bytes.Equal(r.to, o.to)
}

// unheld returns the conditions that some of what is read may not meet.
func (w way) unheld(c conjunction) (all []condition) {
	elements := 0
	for _, one := range c.conditions {
		if one.field.elements {
			elements++
		}
		at := w.fields.index(one.field.name)
		inexact := slices.ContainsFunc(one.literals, func(literal []byte) bool { return !isExact(literal) })
		if byUUID := w.index.Name == "" && one.field.name == "uuid"; !byUUID && (at < 0 || at >= w.covered()) || elements > 1 || inexact {
			all = append(all, one)
		}
	}
	return all
}

// Countable reports whether the keys in what is read are those of the objects that match, each once: so that they can be
// counted without reading an object.
func (p *Plan) Countable() bool {
	if p.sifts || p.elements && len(p.reads) > 1 {
		return false
	}
	for i, r := range p.reads {
		if r.only != nil || r.search != nil || slices.ContainsFunc(p.reads[:i], r.meets) {
			return false
		}
	}
	return true
}

// meets reports whether another read may find the same object by one key.
func (r Read) meets(o Read) bool {
	if r.index != o.index || len(r.equal) != len(o.equal) {
		return true
	}
	disjoint := func(a, b Read) bool { return a.to != nil && b.from != nil && bytes.Compare(a.to, b.from) <= 0 }
	return slices.EqualFunc(r.equal, o.equal, bytes.Equal) && !disjoint(r, o) && !disjoint(o, r)
}

// reads returns the ranges of an index that have what meets the conjunction.
func (w way) reads(c conjunction) ([]Read, error) {
	switch {
	case c.isPoints("uuid"):
		return readsOf(c.points("uuid")), nil
	case w.index.Name == "":
		return []Read{{}}, nil
	}
	equal := [][][]byte{nil}
	for _, f := range w.fields[:w.equal] {
		var parts [][][]byte
		for _, part := range c.points(f.name) {
			if f.descending {
				part = invert(part)
			}
			parts = append(parts, [][]byte{part})
		}
		if len(equal)*len(parts) > maxReads {
			return nil, errTooMany()
		}
		equal = product(equal, parts)
	}
	ranges := domain{everything()}
	var descending bool
	if w.ranged {
		f := w.fields[w.equal]
		ranges, descending = c.domains[f.name], f.descending
	}
	var reads []Read
	for _, parts := range equal {
		for _, in := range ranges {
			r := Read{index: w.index.Name, equal: parts, descending: w.backward, fields: w.fields, span: in, ranged: w.ranged}
			r.from, r.to = in.bounds(descending)
			reads = append(reads, r)
		}
	}
	return reads, nil
}

// readsOf returns the reads of objects by the parts of their uuids.
func readsOf(parts [][]byte) []Read {
	var reads []Read
	for _, part := range parts {
		if part[0] == partString {
			uuid := string(part[1:])
			reads = append(reads, Read{only: &uuid})
		}
	}
	return reads
}
