package object

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
)

// SameValue reports whether two values, nil for none, are the same JSON value: they differ at most in the order of
// properties, in how strings are escaped and in how numbers are written. 10, 10.0 and 1e1 are the same, and so are 0 and -0.
func SameValue(a, b []byte) bool {
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
	return same(values[0], values[1])
}

func same(a, b any) bool {
	switch a := a.(type) {
	case json.Number:
		b, ok := b.(json.Number)
		return ok && (a == b || exact(string(a)) == exact(string(b)))
	case []any:
		b, ok := b.([]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for i := range a {
			if !same(a[i], b[i]) {
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
			if !has || !same(value, other) {
				return false
			}
		}
		return true
	default: // nil, a string, a bool
		return a == b
	}
}

// maxExponent is how many digits an exponent has at most that is read: a number with a larger one is the same only if it
// is written alike.
const maxExponent = 15

// exact returns a text that two JSON numbers have in common if they are equal: all digits but zeros at both ends, and the power
// of ten of the last one. It takes time linear in the text, whatever the exponent is.
func exact(number string) string {
	text, negative := strings.CutPrefix(number, "-")
	mantissa, power := text, int64(0)
	if i := strings.IndexAny(text, "eE"); i >= 0 {
		mantissa = text[:i]
		if strings.Trim(mantissa, "0.") != "" {
			digits := strings.TrimLeft(strings.TrimLeft(text[i+1:], "+-"), "0")
			if len(digits) > maxExponent {
				return number
			}
			power, _ = strconv.ParseInt("0"+digits, 10, 64)
			if text[i+1] == '-' {
				power = -power
			}
		}
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := strings.TrimLeft(whole+fraction, "0")
	significant := strings.TrimRight(digits, "0")
	if significant == "" {
		return "0"
	}
	power += int64(len(digits) - len(significant) - len(fraction))
	out := significant + "e" + strconv.FormatInt(power, 10)
	if negative {
		out = "-" + out
	}
	return out
}
