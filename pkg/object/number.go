package object

import (
	"bytes"
	"encoding/json"
)

// SameValue reports whether two values, nil for none, are the same JSON value: they differ at most in the order of
// properties, in how strings are escaped and in how numbers are written. 10, 10.0 and 1e1 are the same, and so are 0
// and -0.
func SameValue(a, b []byte) bool { return sameBy(sameNumber, a, b) }

// SameDigits is SameValue of values whose numbers are also written alike: for a writer who means to change the text of
// one, as a key does not name an object by 1.0.
func SameDigits(a, b []byte) bool {
	return sameBy(func(a, b string) bool { return a == b }, a, b)
}

func sameBy(number func(a, b string) bool, a, b []byte) bool {
	if bytes.Equal(a, b) || a == nil || b == nil {
		return bytes.Equal(a, b) && (a == nil) == (b == nil)
	}
	var values [2]any
	for i, text := range [][]byte{a, b} {
		d := json.NewDecoder(bytes.NewReader(text))
		d.UseNumber()
		if err := d.Decode(&values[i]); err != nil {
			return false
		}
	}
	return same(number, values[0], values[1])
}

func same(number func(a, b string) bool, a, b any) bool {
	switch a := a.(type) {
	case json.Number:
		b, ok := b.(json.Number)
		return ok && number(string(a), string(b))
	case []any:
		b, ok := b.([]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for i := range a {
			if !same(number, a[i], b[i]) {
				return false
			}
		}
		return true
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for name, value := range a {
			other, has := b[name]
			if !has || !same(number, value, other) {
				return false
			}
		}
		return true
	default: // nil, a string, a bool
		return a == b
	}
}

// sameNumber reports whether two numbers are equal. Those whose exponents are too large to be read are only if they are
// written alike.
func sameNumber(a, b string) bool {
	if a == b {
		return true
	}
	x, y := ParseDecimal([]byte(a)), ParseDecimal([]byte(b))
	return !x.IsCapped() && !y.IsCapped() && x.Compare(y) == 0
}
