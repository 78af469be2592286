package query

import (
	"bytes"
	"cmp"
	"slices"
	"strings"

	"belfry/pkg/object"
)

// operator compares a field, on its left, with literals.
type operator uint8

const (
	equals operator = iota // one of the literals
	less
	lessOrEqual
	greater
	greaterOrEqual
	hasPrefix
	present // without a literal
)

// mirrored is the operator with its sides exchanged.
func (op operator) mirrored() operator {
	switch op {
	case less:
		return greater
	case lessOrEqual:
		return greaterOrEqual
	case greater:
		return less
	case greaterOrEqual:
		return lessOrEqual
	default:
		return op
	}
}

// holds reports whether the operator is true of operands that compare like c.
func (op operator) holds(c int) bool {
	switch op {
	case less:
		return c < 0
	case lessOrEqual:
		return c <= 0
	case greater:
		return c > 0
	case greaterOrEqual:
		return c >= 0
	default:
		return c == 0
	}
}

// condition is one comparison of a filter, or its negation; literals are compact JSON.
type condition struct {
	field    field
	op       operator
	literals [][]byte // one, but any number for equals and none for present
	negated  bool

	parts domain // not nil: the parts of the field, instead of a comparison
}

// match reports whether an object meets the condition exactly.
func (c condition) match(o object.Object) bool {
	value := c.field.of(o)
	if c.parts != nil {
		return c.parts.has(EncodePart(value))
	}
	if !c.field.elements {
		return c.holds(value) != c.negated
	}
	found := false
	object.Elements(value, func(element []byte) bool {
		found = c.holds(element)
		return !found
	})
	return found != c.negated
}

// holds reports whether the comparison is true of a value, nil when absent.
func (c condition) holds(value []byte) bool {
	if len(value) == 0 {
		return false
	}
	of := operand{text: value}
	isTrue := func(literal []byte) bool { return c.op.compare(&of, literal) }
	return c.op == present || slices.ContainsFunc(c.literals, isTrue)
}

func (op operator) compare(of *operand, literal []byte) bool {
	kind := kindOf(of.text)
	if kind != kindOf(literal) {
		return false
	}
	switch kind {
	case '0':
		return op.holds(of.compareNumber(literal))
	case '"':
		other, _ := object.Text(literal)
		text := of.beginning(len(other))
		if op == hasPrefix {
			return strings.HasPrefix(text, other)
		}
		return op.holds(cmp.Compare(text, other))
	default:
		return bytes.Equal(of.text, literal)
	}
}

// isPoints reports whether the field has one of a few parts.
func (c condition) isPoints() bool {
	return c.parts != nil || !c.negated && c.op == equals || c.negated && c.op == present
}

// domain returns the parts that the field of an object that meets the condition can have,
// and no others where parts tell: those of long strings and of numbers that are not a float64 do not.
func (c condition) domain() domain {
	switch {
	case c.parts != nil:
		return c.parts
	case c.negated:
		return c.domainOf(false).complement()
	default:
		return c.domainOf(true)
	}
}

// domainOf returns the parts for some of whose values the comparison is true, or those for all of whose values it is.
func (c condition) domainOf(some bool) domain {
	if c.op == present {
		return union(point(EncodePart(nil))).complement()
	}
	var all []interval
	for _, literal := range c.literals {
		if in, has := c.op.interval(literal, some); has {
			all = append(all, in)
		}
	}
	return union(all...)
}

// interval returns the parts of domainOf for one literal. Where its part is that of other values too, some is
// also for these.
func (op operator) interval(literal []byte, some bool) (in interval, has bool) {
	part, exact := EncodePart(literal), isExact(literal)
	in = typed(part[0])
	switch op {
	case less:
		in.to = cut{part, some && !exact}
	case lessOrEqual:
		in.to = cut{part, some || exact}
	case greater:
		in.from = cut{part, !some || exact}
	case greaterOrEqual:
		in.from = cut{part, !some && !exact}
	case hasPrefix:
		return prefixed(part), some || exact
	default:
		return point(part), some || exact
	}
	return in, true
}

// isExact reports whether only values equal to this one have its part.
func isExact(value []byte) bool {
	part := EncodePart(value)
	switch part[0] {
	case partString:
		return len(part) < 1+maxString
	case partNumber:
		return len(part) == numberPart
	default:
		return true
	}
}

// prefixed is the interval of the strings whose parts begin with a part. A string that is
// too long for a part has the same one as others that begin alike.
func prefixed(part []byte) interval {
	end := slices.Clone(part)
	end[len(end)-1]++ // no byte of UTF-8 is 0xff, and the type is below it
	return interval{from: cut{part: part}, to: cut{part: end}}
}

// kindOf is the type of a JSON value: its first byte, with 0 for all numbers
// and t for both booleans.
func kindOf(value []byte) byte {
	switch c := value[0]; c {
	case '"', '{', '[', 'n', 't':
		return c
	case 'f':
		return 't'
	default:
		return '0'
	}
}
