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

	only *string // not nil: there is at most the object with this uuid
}

// Query is what to ask the driver, without After and Limit; or, when scan is
// true, that Scan is to be asked instead.
func (r Read) Query() (q driver.Query, scan bool) {
	if r.index == "" {
		return driver.Query{}, true
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
		p.sifts = p.sifts || w.sifts(all[i])
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

// sifts reports whether what is read has objects that don't meet the conditions.
func (w way) sifts(c conjunction) bool {
	elements := 0
	return slices.ContainsFunc(c.conditions, func(one condition) bool {
		if one.field.elements {
			elements++
		}
		at := w.fields.index(one.field.name)
		return at < 0 || at >= w.covered() || elements > 1 || slices.ContainsFunc(one.literals, func(literal []byte) bool { return !isExact(literal) })
	})
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
			r := Read{index: w.index.Name, equal: parts, descending: w.backward}
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
