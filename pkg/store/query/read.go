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
	others []other // of the range, only what has keys in these indexes as well is read

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
	p.all, p.ways = all, ways
	shared := make([]bool, len(ways)) // something that is read is for another conjunction, too
	held, alone := make([][]bool, len(ways)), make([][]bool, len(ways))
	for i, w := range ways {
		if all[i].isPoints("uuid") {
			w.index = Index{} // it is not read: there are few objects
		}
		p.elements = p.elements || w.index.HasElements()
		reads, err := w.reads(all[i], p.mostReads())
		if err != nil {
			return err
		}
		alone[i] = w.held(all[i])
		held[i] = slices.Clone(alone[i])
		others := w.others(all[i], held[i], p.others)
		for _, r := range reads {
			r.conjunction, r.others = i, others
			if at := slices.IndexFunc(p.reads, r.same); at >= 0 && !p.inTurn {
				p.reads[at].others = either(p.reads[at].others, others)
				shared[i], shared[p.reads[at].conjunction] = true, true
				continue
			}
			p.reads = append(p.reads, r)
		}
	}
	if len(p.reads) > p.mostReads() {
		return errTooManyReads
	}
	for i := range ways {
		if shared[i] {
			held[i] = alone[i] // what others hold is not of all that is read
		}
		unheld := all[i].unheld(held[i])
		p.unheld = append(p.unheld, unheld)
		p.sifts = p.sifts || len(unheld) > 0
	}
	return nil
}

func (p *Plan) mostReads() int {
	if p.most > 0 {
		return p.most
	}
	return maxReads
}

// same reports whether another read of the plan finds the same by its range.
func (r Read) same(o Read) bool {
	a, _ := r.Only()
	b, _ := o.Only()
	return a == b && r.index == o.index && slices.EqualFunc(r.equal, o.equal, bytes.Equal) && bytes.Equal(r.from, o.from) && bytes.Equal(r.to, o.to)
}

// held reports of each condition whether the keys of what is read meet it.
func (w way) held(c conjunction) []bool {
	held := make([]bool, len(c.conditions))
	if w.index.Name == "" {
		c.hold(held, field{name: "uuid"})
		return held
	}
	for _, f := range w.fields[:w.covered()] {
		c.hold(held, f)
	}
	return held
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
func (w way) reads(c conjunction, most int) ([]Read, error) {
	switch {
	case c.isPoints("uuid"):
		return readsOf(c.points("uuid")), nil
	case w.index.Name == "":
		return []Read{{}}, nil
	}
	equal := [][][]byte{nil}
	for _, f := range w.fields[:w.equal] {
		parts := f.keyParts(c.points(f.name))
		if len(equal)*len(parts) > most {
			return nil, errTooManyReads
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
