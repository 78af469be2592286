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

	fields  order    // of the index
	span    interval // of the field after the equal ones, if it is ranged
	ranged  bool
	filters []indexFilter // of the range, only objects with keys in these indexes as well are read

	uuid   *string // not nil: there is at most the object with this uuid
	search *Search // not nil: objects are found by words instead
}

// Query is the query for the driver, without After and Limit; or, when scan is
// true, that Scan is to be asked instead, or ScanBackward if the query is descending.
func (r Read) Query() (q driver.Query, scan bool) {
	if r.index == "" {
		return driver.Query{Descending: r.descending}, true
	}
	return driver.Query{Index: r.index, Equal: r.equal, From: r.from, To: r.to, Descending: r.descending}, false
}

// Index returns the name of the index that is read; "" for none.
func (r Read) Index() string { return r.index }

// Only returns the one uuid that the read can find, if there is only one.
func (r Read) Only() (uuid string, only bool) {
	if r.uuid == nil {
		return "", false
	}
	return *r.uuid, true
}

// setReads sets the reads of these uses.
func (p *Plan) setReads(uses []indexUse) error {
	all := p.withDomains
	p.uses = uses
	shared := make([]bool, len(uses)) // something that is read is for another conjunction, too
	held, alone := make([][]bool, len(uses)), make([][]bool, len(uses))
	for i, u := range uses {
		if all[i].isPoints("uuid") {
			u.index = Index{} // it is not read: there are few objects
		}
		p.elements = p.elements || u.index.HasElements()
		reads, err := u.ranges(all[i], p.maxReadCount())
		if err != nil {
			return err
		}
		alone[i] = u.indexConditions(all[i])
		held[i] = slices.Clone(alone[i])
		others := u.intersections(all[i], held[i], p.filterIndexes)
		for _, r := range reads {
			r.conjunction, r.filters = i, others
			if at := slices.IndexFunc(p.reads, r.isSameRange); at >= 0 && !p.inTurn {
				p.reads[at].filters = unionOfFilters(p.reads[at].filters, others)
				shared[i], shared[p.reads[at].conjunction] = true, true
				continue
			}
			p.reads = append(p.reads, r)
		}
	}
	if len(p.reads) > p.maxReadCount() {
		return errTooManyReads
	}
	for i := range uses {
		if shared[i] {
			held[i] = alone[i] // conditions that others hold do not apply to all reads
		}
		unheld := all[i].residual(held[i])
		p.residual = append(p.residual, unheld)
		p.readsUnmatched = p.readsUnmatched || len(unheld) > 0
	}
	return nil
}

func (p *Plan) maxReadCount() int {
	if p.maxRanges > 0 {
		return p.maxRanges
	}
	return maxReads
}

// isSameRange reports whether another read of the plan finds the same by its range.
func (r Read) isSameRange(o Read) bool {
	a, _ := r.Only()
	b, _ := o.Only()
	return a == b && r.index == o.index && slices.EqualFunc(r.equal, o.equal, bytes.Equal) &&
		bytes.Equal(r.from, o.from) && bytes.Equal(r.to, o.to)
}

// indexConditions reports for each condition whether the keys that are read meet it.
func (u indexUse) indexConditions(c conjunction) []bool {
	held := make([]bool, len(c.conditions))
	if u.index.Name == "" {
		c.markHeld(held, field{name: "uuid"})
		return held
	}
	for _, f := range u.fields[:u.boundFields()] {
		c.markHeld(held, f)
	}
	return held
}

// Countable reports whether the keys that are read are those of the objects that match, each once: so that they can
// be counted without reading an object.
func (p *Plan) Countable() bool {
	if p.readsUnmatched || p.elements && len(p.reads) > 1 {
		return false
	}
	for i, r := range p.reads {
		if r.uuid != nil || r.search != nil || slices.ContainsFunc(p.reads[:i], r.overlaps) {
			return false
		}
	}
	return true
}

// overlaps reports whether another read may find the same object by one key.
func (r Read) overlaps(o Read) bool {
	if r.index != o.index || len(r.equal) != len(o.equal) {
		return true
	}
	disjoint := func(a, b Read) bool { return a.to != nil && b.from != nil && bytes.Compare(a.to, b.from) <= 0 }
	return slices.EqualFunc(r.equal, o.equal, bytes.Equal) && !disjoint(r, o) && !disjoint(o, r)
}

// ranges returns the ranges of an index that have the objects of the conjunction.
func (u indexUse) ranges(c conjunction, most int) ([]Read, error) {
	switch {
	case c.isPoints("uuid"):
		return readsOf(c.points("uuid")), nil
	case u.index.Name == "":
		return []Read{{}}, nil
	}
	equal := [][][]byte{nil}
	for _, f := range u.fields[:u.equal] {
		parts := f.keyParts(c.points(f.name))
		if len(equal)*len(parts) > most {
			return nil, errTooManyReads
		}
		equal = product(equal, parts)
	}
	ranges := domain{allParts()}
	var descending bool
	if u.ranged {
		f := u.fields[u.equal]
		ranges, descending = c.domains[f.name], f.descending
	}
	var reads []Read
	for _, parts := range equal {
		for _, in := range ranges {
			r := Read{index: u.index.Name, equal: parts, descending: u.backward, fields: u.fields, span: in,
				ranged: u.ranged}
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
			reads = append(reads, Read{uuid: &uuid})
		}
	}
	return reads
}
