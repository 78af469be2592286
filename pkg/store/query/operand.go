package query

import (
	"cmp"
	"slices"
	"strconv"
	"unicode/utf8"

	"belfry/pkg/object"
)

// operand is a value that is compared with the literals of a condition, of which there can be a thousand. It may have
// as many bytes as an object, so it is not read as a whole for each.
type operand struct {
	text   []byte // JSON
	number *object.Decimal
}

// compareNumber compares a number with a literal.
func (o *operand) compareNumber(literal []byte) int {
	if x, ok := smallInt(o.text); ok {
		if y, ok := smallInt(literal); ok {
			return cmp.Compare(x, y)
		}
	}
	if o.number == nil {
		d := object.ParseDecimal(o.text)
		o.number = &d
	}
	return o.number.Compare(object.ParseDecimal(literal))
}

// escape is how many bytes a character of a JSON string takes at most for each byte that it stands for.
const escape = len(`\u0000`)

// beginning returns as much of the text in a string as decides how it compares with one of n bytes: all of it, or more
// than n bytes from its beginning.
func (o *operand) beginning(n int) string {
	quoted := o.text
	if most := escape*n + 8*escape; len(quoted) > most {
		end := 1
		for end < most { // no escape is cut
			switch {
			case quoted[end] != '\\':
				end++
			case quoted[end+1] == 'u':
				end += escape
			default:
				end += 2
			}
		}
		for end < len(quoted) && !utf8.RuneStart(quoted[end]) {
			end++
		}
		if end < len(quoted)-1 {
			quoted = append(slices.Clip(quoted[:end]), '"')
		}
	}
	text, _ := object.Text(quoted)
	return text
}

// compareNumbers compares two JSON numbers by their exact decimal values. Its time is
// linear in their text, and independent of their exponents.
func compareNumbers(a, b []byte) int {
	if x, ok := smallInt(a); ok {
		if y, ok := smallInt(b); ok {
			return cmp.Compare(x, y)
		}
	}
	return object.ParseDecimal(a).Compare(object.ParseDecimal(b))
}

// smallInt reads the usual number: an integer of at most 18 digits.
func smallInt(text []byte) (int64, bool) {
	if len(text) > 18 {
		return 0, false
	}
	n, err := strconv.ParseInt(string(text), 10, 64)
	return n, err == nil
}
