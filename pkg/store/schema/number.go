package schema

import (
	"math/big"
	"strconv"
	"strings"
)

// maxExponent bounds the power of ten of a number. Documents keep
// their numbers as text, so that any other bound than this is exact.
const maxExponent = 1_000_000

// number is a decimal: ±digits × 10^exponent. digits has neither leading nor trailing
// zeros, so equal numbers have equal fields; it is empty for zero.
type number struct {
	negative bool
	digits   string
	exponent int
}

// parseNumber reads a JSON number. It fails when the exponent is out of bounds.
func parseNumber(s string) (number, bool) {
	var n number
	s, n.negative = strings.CutPrefix(s, "-")
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		exponent, err := strconv.Atoi(s[i+1:])
		if err != nil || exponent > maxExponent || exponent < -maxExponent {
			return number{}, false
		}
		n.exponent, s = exponent, s[:i]
	}
	if whole, fraction, ok := strings.Cut(s, "."); ok {
		n.exponent -= len(fraction)
		s = whole + fraction
	}
	n.digits = strings.TrimRight(s, "0")
	n.exponent += len(s) - len(n.digits)
	n.digits = strings.TrimLeft(n.digits, "0")
	if n.digits == "" {
		return number{}, true
	}
	return n, true
}

func (n number) integer() bool { return n.exponent >= 0 }

// plain writes the digits of a whole number, without its sign.
func (n number) plain() string {
	if n.digits == "" {
		return "0"
	}
	return n.digits + strings.Repeat("0", n.exponent)
}

// compare is negative when n < m, positive when n > m.
func (n number) compare(m number) int {
	if n == m {
		return 0
	}
	if sign, other := n.sign(), m.sign(); sign != other {
		return sign - other
	}
	magnitude := n.compareMagnitude(m)
	if n.negative {
		return -magnitude
	}
	return magnitude
}

func (n number) sign() int {
	switch {
	case n.digits == "":
		return 0
	case n.negative:
		return -1
	default:
		return 1
	}
}

func (n number) compareMagnitude(m number) int {
	if d := (len(n.digits) + n.exponent) - (len(m.digits) + m.exponent); d != 0 {
		return d
	}
	return strings.Compare(n.digits, m.digits)
}

// multipleOf reports whether n is a whole multiple of m, which is not zero.
func (n number) multipleOf(m number) bool {
	if n.digits == "" {
		return true
	}
	shift := n.exponent - m.exponent
	if shift < 0 {
		// n's digits do not end in a zero, so no power of ten divides them.
		return false
	}
	divisor, _ := new(big.Int).SetString(m.digits, 10)
	value, _ := new(big.Int).SetString(n.digits, 10)
	power := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(shift)), divisor)
	value.Mod(value, divisor).Mul(value, power).Mod(value, divisor)
	return value.Sign() == 0
}
