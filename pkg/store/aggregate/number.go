package aggregate

import (
	"bytes"
	"math/big"
	"strconv"
	"strings"

	"belfry/pkg/object"
)

const (
	// maxDigits is how many significant digits a summed number, and a sum, may have.
	maxDigits = 34
	// maxPower bounds summed numbers: at least 1e-100, and below 1e100, without their sign.
	maxPower = 100
	// maxPlain is up to how many digits a number is written without an exponent.
	maxPlain = 34
)

// number is a JSON number as 0.DIGITS times ten to the power of exponent, without needless zeros; zero has no digits.
type number struct {
	negative bool
	digits   string
	exponent int64
}

// parseNumber reads a JSON number; false for one whose exponent is too large to be read.
func parseNumber(text []byte) (n number, ok bool) {
	d := object.ParseDecimal(text)
	if d.IsCapped() {
		return number{}, false
	}
	exact := string(d.Append(nil)) // +DIGITSeEXPONENT, or 0
	if exact == "0" {
		return number{}, true
	}
	digits, exponent, _ := strings.Cut(exact[1:], "e")
	n = number{negative: exact[0] == '-', digits: digits}
	var err error
	n.exponent, err = strconv.ParseInt(exponent, 10, 64)
	return n, err == nil
}

// text returns the one text of a number.
func (n number) text() (dst []byte) {
	if n.digits == "" {
		return []byte{'0'}
	}
	if n.negative {
		dst = append(dst, '-')
	}
	count := int64(len(n.digits))
	switch {
	case n.exponent > maxPlain || n.exponent <= -6:
		dst = append(dst, n.digits[0])
		if count > 1 {
			dst = append(append(dst, '.'), n.digits[1:]...)
		}
		return strconv.AppendInt(append(dst, 'e'), n.exponent-1, 10)
	case n.exponent <= 0:
		dst = append(dst, "0."...)
		dst = append(dst, bytes.Repeat([]byte{'0'}, int(-n.exponent))...)
		return append(dst, n.digits...)
	case n.exponent >= count:
		dst = append(dst, n.digits...)
		return append(dst, bytes.Repeat([]byte{'0'}, int(n.exponent-count))...)
	default:
		dst = append(append(dst, n.digits[:n.exponent]...), '.')
		return append(dst, n.digits[n.exponent:]...)
	}
}

// isSummable reports whether a number can be a part of a sum.
func (n number) isSummable() bool {
	return len(n.digits) <= maxDigits && (n.digits == "" || -maxPower < n.exponent && n.exponent <= maxPower)
}

// total is the exact sum of summable numbers: amount times ten to the power of exponent.
type total struct {
	amount   *big.Int
	exponent int64
}

// totalOf reads the text of a total.
func totalOf(text string) total {
	n, _ := parseNumber([]byte(text))
	t := total{amount: new(big.Int)}
	if n.digits == "" {
		return t
	}
	t.amount.SetString(n.digits, 10)
	if n.negative {
		t.amount.Neg(t.amount)
	}
	t.exponent = n.exponent - int64(len(n.digits))
	return t
}

// plus returns the sum of two totals.
func (t total) plus(other total) total {
	least := min(t.exponent, other.exponent)
	return total{new(big.Int).Add(t.at(least), other.at(least)), least}
}

// minus returns the difference of two totals.
func (t total) minus(other total) total {
	return t.plus(total{new(big.Int).Neg(other.amount), other.exponent})
}

// at returns the amount for a smaller exponent.
func (t total) at(exponent int64) *big.Int {
	scale := new(big.Int).Exp(big.NewInt(10), big.NewInt(t.exponent-exponent), nil)
	return scale.Mul(scale, t.amount)
}

// number returns a total in its one form.
func (t total) number() number {
	text := t.amount.String()
	digits, negative := strings.CutPrefix(text, "-")
	exponent := int64(len(digits)) + t.exponent
	if digits = strings.TrimRight(digits, "0"); digits == "" {
		return number{}
	}
	return number{negative, digits, exponent}
}

func (t total) String() string { return string(t.number().text()) }
