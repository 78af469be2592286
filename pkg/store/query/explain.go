package query

import (
	"encoding/binary"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Explanation says how indexes answer a list.
type Explanation struct {
	Reads    []ExplainedRead `json:"reads"`
	More     int             `json:"more,omitempty"`     // reads that are left out, of further values of the rule
	Combined string          `json:"combined,omitempty"` // several reads are merged, or made inTurn
	Order    []string        `json:"order"`              // of the objects
	Checked  []string        `json:"checked,omitempty"`  // conditions that are evaluated on the objects that are read
}

// ExplainedRead is a range that a list reads.
type ExplainedRead struct {
	Index    []string `json:"index,omitempty"` // its fields; none: the records in the order of uuids
	UUID     string   `json:"uuid,omitempty"`  // the one object that is read
	Words    string   `json:"words,omitempty"` // words to search for in the text, instead of an index
	In       string   `json:"in,omitempty"`    // the fields that are searched
	Range    []string `json:"range,omitempty"` // of the index, as conditions; none: all of it
	Backward bool     `json:"backward,omitempty"`
	// which alternative of the filter it is for, if there are several
	Alternative int `json:"alternative,omitempty"`

	// of the range, only objects that are in these as well are read
	Intersected []ExplainedRange `json:"intersected,omitempty"`
}

// ExplainedRange is a range of an index of which only keys are read.
type ExplainedRange struct {
	Index []string `json:"index"` // its fields
	Range []string `json:"range"` // as conditions on the first ones
}

// Explain returns the reads of the list.
func (p *Plan) Explain() Explanation {
	e := Explanation{Reads: []ExplainedRead{}, Order: []string{}}
	for i, r := range p.reads {
		if i == maxReads {
			e.More = len(p.reads) - i
			break
		}
		one := r.explain()
		if len(p.conjunctions) > 1 {
			one.Alternative = r.conjunction + 1
		}
		e.Reads = append(e.Reads, one)
	}
	switch {
	case p.inTurn:
		e.Combined = "inTurn"
	case len(p.reads) > 1:
		e.Combined = "merged"
	}
	if p.Searches() {
		e.Order = []string{"relevance"}
	} else if !p.inTurn {
		e.Order = p.orderNames()
	}
	for _, conditions := range p.residual {
		for _, c := range conditions {
			if text := c.text(); !slices.Contains(e.Checked, text) {
				e.Checked = append(e.Checked, text)
			}
		}
	}
	return e
}

func (r Read) explain() ExplainedRead {
	if s, is := r.Search(); is {
		return s.explain()
	}
	e := ExplainedRead{Backward: r.descending}
	if r.uuid != nil {
		return ExplainedRead{UUID: *r.uuid}
	}
	e.Index, e.Range = r.fields.names(), r.fields.held(r.equal)
	if r.ranged {
		e.Range = append(e.Range, r.span.texts(r.fields[len(r.equal)])...)
	}
	for _, o := range r.filters {
		e.Intersected = append(e.Intersected, o.explain())
	}
	return e
}

func (o indexFilter) explain() ExplainedRange {
	fields := o.index.fields()
	e := ExplainedRange{Index: fields.names(), Range: fields.held(o.equal[0])}
	if len(o.equal) == 1 {
		return e
	}
	either := make([]string, len(o.equal))
	for i, parts := range o.equal {
		either[i] = strings.Join(fields.held(parts), " && ")
	}
	e.Range = []string{strings.Join(either, " || ")}
	return e
}

// names are those of the fields, each with its direction.
func (o order) names() (all []string) {
	for _, f := range o {
		all = append(all, order{f}.text())
	}
	return all
}

// held writes the leading parts of a key as conditions on the fields.
func (o order) held(parts [][]byte) (all []string) {
	for i, part := range parts {
		f := o[i]
		if f.descending {
			part = invert(part[:len(part)-1])
			part = part[:len(part)-1]
		}
		all = append(all, point(part).texts(f)...)
	}
	return all
}

// texts writes an interval of a field as conditions.
func (i interval) texts(f field) (all []string) {
	if i.isPoint() {
		switch value := textOf(i.from.part); {
		case f.elements:
			return []string{value + " in " + strings.TrimSuffix(f.name, "[]")}
		case i.from.part[0] == partAbsent:
			return []string{"!has(" + f.name + ")"}
		default:
			return []string{f.name + " == " + value}
		}
	}
	if i.from.after && i.from.part[0] == partAbsent && i.to.compare(maxCut()) >= 0 {
		return []string{"has(" + f.name + ")"}
	}
	fromType, toType := len(i.from.part) == 1 && !i.from.after, len(i.to.part) == 1 && !i.to.after
	if fromType && toType && i.to.part[0] <= i.from.part[0]+0x10 {
		return []string{f.name + " is " + typeName(i.from.part[0])}
	}
	sameType := i.from.part[0] == i.to.part[0] || toType && i.to.part[0] == i.from.part[0]+1
	switch {
	case !fromType && i.from.after:
		all = append(all, f.name+" > "+textOf(i.from.part))
	case !fromType:
		all = append(all, f.name+" >= "+textOf(i.from.part))
	case !sameType && i.from.compare(minCut()) > 0:
		all = append(all, f.name+" from "+typeName(i.from.part[0])+" on")
	}
	switch {
	case !toType && i.to.after:
		all = append(all, f.name+" <= "+textOf(i.to.part))
	case !toType:
		all = append(all, f.name+" < "+textOf(i.to.part))
	case !sameType && i.to.compare(maxCut()) < 0:
		all = append(all, f.name+" before "+typeName(i.to.part[0]))
	}
	if !sameType && len(all) > 0 {
		all[0] += " in the order of all types"
	}
	return all
}

func (i interval) isPoint() bool {
	return !i.from.after && i.to.after && string(i.from.part) == string(i.to.part)
}

func typeName(kind byte) string {
	switch {
	case kind < partNull:
		return "absent"
	case kind < partFalse:
		return "null"
	case kind < partNumber:
		return "a boolean"
	case kind < partString:
		return "a number"
	case kind < partComposite:
		return "a string"
	default:
		return "an array or an object"
	}
}

// textOf writes the value of a part. One that stands for several values ends with three dots.
func textOf(part []byte) string {
	switch part[0] {
	case partNumber:
		if len(part) < numberPart {
			break
		}
		bits := binary.BigEndian.Uint64(part[1:numberPart])
		if bits&(1<<63) != 0 {
			bits &^= 1 << 63
		} else {
			bits = ^bits
		}
		text := strconv.FormatFloat(math.Float64frombits(bits), 'g', -1, 64)
		if len(part) > numberPart {
			text += "..."
		}
		return text
	case partString:
		text := strconv.Quote(string(part[1:]))
		if len(part) >= 1+maxString {
			text += "..."
		}
		return text
	case partNull:
		return "null"
	case partFalse:
		return "false"
	case partTrue:
		return "true"
	}
	return typeName(part[0])
}

// text writes a condition as a filter has it.
func (c condition) text() string {
	name := strings.TrimSuffix(c.field.name, "[]")
	var text string
	switch {
	case c.parts != nil:
		return name + " has one of the values that the rule allows"
	case c.op == present:
		text = "has(" + name + ")"
	case c.op == hasPrefix:
		text = name + ".startsWith(" + string(c.literals[0]) + ")"
	case c.field.elements:
		text = string(c.literals[0]) + " in " + name
	case c.op == equals && len(c.literals) != 1:
		list := make([]string, len(c.literals))
		for i, literal := range c.literals {
			list[i] = string(literal)
		}
		text = name + " in [" + strings.Join(list, ", ") + "]"
	case c.op == equals && c.negated:
		return name + " != " + string(c.literals[0])
	default:
		text = name + " " + c.op.symbol() + " " + string(c.literals[0])
	}
	if c.negated {
		return "!(" + text + ")"
	}
	return text
}

func (op operator) symbol() string {
	switch op {
	case less:
		return "<"
	case lessOrEqual:
		return "<="
	case greater:
		return ">"
	case greaterOrEqual:
		return ">="
	default:
		return "=="
	}
}
