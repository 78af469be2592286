package query

import (
	"cmp"
	"strconv"

	"belfry/pkg/object"
)

// compareNumbers compares two JSON numbers by their exact decimal values. It
// takes time linear in their text, whatever their exponents are.
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
