package object

import (
	"bytes"
	"cmp"
	"slices"
	"strconv"
)

// Decimal is a JSON number as 0.DIGITS times ten to the power of exponent. Digits neither
// begin nor end with a zero, so that equal numbers are written alike; zero has no digits.
type Decimal struct {
	negative bool
	digits   []byte
	exponent int64
	capped   bool
}

// ParseDecimal reads a JSON number. Its time is linear in the length of the text and
// independent of the exponent.
func ParseDecimal(text []byte) Decimal {
	var d Decimal
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
		n := parsePower(power)
		d.capped = n == maxPower || n == -maxPower
		d.exponent = n + int64(len(whole)) - int64(len(digits)-len(significant))
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

// Compare compares two numbers by their exact values. Of numbers whose exponents are too large to be
// read, see IsCapped, it knows the sign and that they are large or small.
func (d Decimal) Compare(other Decimal) int {
	if d.sign() != other.sign() {
		return cmp.Compare(d.sign(), other.sign())
	}
	c := cmp.Or(cmp.Compare(d.exponent, other.exponent), bytes.Compare(d.digits, other.digits))
	return c * d.sign()
}

// IsCapped reports whether the exponent is larger than is read: another number of this kind may be another one although
// the two compare as equal.
func (d Decimal) IsCapped() bool { return d.capped }

func (d Decimal) sign() int {
	switch {
	case len(d.digits) == 0:
		return 0
	case d.negative:
		return -1
	default:
		return 1
	}
}

// Append appends a text that two numbers have in common if and only if they compare as equal.
func (d Decimal) Append(dst []byte) []byte {
	switch d.sign() {
	case 0:
		return append(dst, '0')
	case -1:
		dst = append(dst, '-')
	default:
		dst = append(dst, '+')
	}
	dst = append(append(dst, d.digits...), 'e')
	return strconv.AppendInt(dst, d.exponent, 10)
}
