package query

import (
	"bytes"
	"cmp"
	"slices"
	"strings"

	"belfry/pkg/store/driver"
	"belfry/pkg/store/object"
)

// operator compares a field, on its left, with a literal.
type operator uint8

const (
	equals operator = iota
	less
	lessOrEqual
	greater
	greaterOrEqual
	hasPrefix
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

// condition is one comparison of a filter; the literal is compact JSON text.
type condition struct {
	field   string
	op      operator
	literal []byte
}

// match reports whether a field's value, nil when absent, satisfies the condition exactly.
func (c condition) match(value []byte) bool {
	if len(value) == 0 {
		return false
	}
	kind := kindOf(value)
	if kind != kindOf(c.literal) {
		return false
	}
	switch kind {
	case '0':
		return c.op.holds(compareNumbers(value, c.literal))
	case '"':
		text, _ := object.Text(value)
		literal, _ := object.Text(c.literal)
		if c.op == hasPrefix {
			return strings.HasPrefix(text, literal)
		}
		return c.op.holds(cmp.Compare(text, literal))
	default:
		return bytes.Equal(value, c.literal)
	}
}

// bounds are the least and the greatest part that the condition's field can
// have, the latter in the sense of driver.Query.To: what begins with it is
// within. A part with a NUL appended sorts between a string and all that
// come after it, for no stored string holds one.
func (c condition) bounds() (from, to []byte) {
	part := EncodePart(c.literal)
	all := part[:1:1] // of the literal's type
	after := part
	if part[0] == partString && len(part) < driver.MaxPart {
		after = append(slices.Clone(part), 0)
	}
	switch c.op {
	case less, lessOrEqual:
		return all, after
	case greater:
		return after, all
	case greaterOrEqual:
		return part, all
	default:
		return part, part
	}
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
