package query

import (
	"bytes"
	"cmp"
	"slices"
	"strconv"
)

// compareNumbers compares two JSON numbers by their exact decimal values. It
// takes time linear in their text, whatever their exponents are.
func compareNumbers(a, b []byte) int {
	if x, ok := smallInt(a); ok {
		if y, ok := smallInt(b); ok {
			return cmp.Compare(x, y)
		}
	}
	return parseDecimal(a).compare(parseDecimal(b))
}

// smallInt reads the usual number: an integer of at most 18 digits.
func smallInt(text []byte) (int64, bool) {
	if len(text) > 18 {
		return 0, false
	}
	n, err := strconv.ParseInt(string(text), 10, 64)
	return n, err == nil
}

// decimal is a number as 0.DIGITS times ten to the power of exponent. Digits
// neither begin nor end with a zero, so that equal numbers are written alike;
// zero has none.
type decimal struct {
	negative bool
	digits   []byte
	exponent int64
}

func (d decimal) compare(other decimal) int {
	if d.sign() != other.sign() {
		return cmp.Compare(d.sign(), other.sign())
	}
	c := cmp.Or(cmp.Compare(d.exponent, other.exponent), bytes.Compare(d.digits, other.digits))
	return c * d.sign()
}

func (d decimal) sign() int {
	switch {
	case len(d.digits) == 0:
		return 0
	case d.negative:
		return -1
	default:
		return 1
	}
}

func parseDecimal(text []byte) decimal {
	var d decimal
	text, d.negative = bytes.CutPrefix(text, []byte("-"))
	mantissa, power := text, []byte(nil)
	if i := bytes.IndexAny(text, "eE"); i >= 0 {
		mantissa, power = text[:i], text[i+1:]
	}
	whole, fraction, _ := bytes.Cut(mantissa, []byte("."))
	digits := whole
	if len(fraction) > 0 {
		digits = slices.Concat(whole, fraction)
	}
	significant := bytes.TrimLeft(digits, "0")
	d.digits = bytes.TrimRight(significant, "0")
	if len(d.digits) > 0 {
		d.exponent = parsePower(power) + int64(len(whole)) - int64(len(digits)-len(significant))
	}
	return d
}

// maxPower caps exponents: far above any measured quantity, far below where an int64
// overflows.
const maxPower = 1 << 50

func parsePower(text []byte) int64 {
	text, negative := bytes.CutPrefix(text, []byte("-"))
	text, _ = bytes.CutPrefix(text, []byte("+"))
	var n int64
	for _, c := range text {
		n = min(n*10+int64(c-'0'), maxPower)
	}
	if negative {
		return -n
	}
	return n
}
