package query

import (
	"math/big"
	"strings"
	"testing"
)

func TestNumbersCompareExactly(t *testing.T) {
	ascending := []string{
		`-1e999999999999999999`, `-1e400`, `-123456789012345678901234567890.5`, `-123456789012345678901234567890`, `-2`,
		`-1.5`, `-0.001`,
		`0`, `1e-400`, `0.001`, `0.9999999999999999999999999`, `1`, `1.0000000000000000000000001`, `9007199254740992`,
		`9007199254740993`,
		`123456789012345678901234567890`, `123456789012345678901234567891`, `1e400`, `1.1e400`, `1e401`,
		`1e999999999999999999`,
	}
	for i, a := range ascending {
		for j, b := range ascending {
			want := sign(i - j)
			if got := compareNumbers([]byte(a), []byte(b)); got != want {
				t.Errorf("%s and %s compare as %d", a, b, got)
			}
		}
	}
}

func sign(n int) int { return big.NewInt(int64(n)).Sign() }

func TestEqualNumbersInDifferentNotation(t *testing.T) {
	for _, group := range [][]string{
		{`0`, `-0`, `0.000`, `0e7`, `-0.0E-999999999`},
		{`100`, `1e2`, `1E+2`, `100.00`, `0.1e3`, `1000e-1`, `0.0001e6`},
		{`-1.5`, `-15e-1`, `-1.50`},
	} {
		for _, a := range group {
			for _, b := range group {
				if compareNumbers([]byte(a), []byte(b)) != 0 {
					t.Errorf("%s and %s differ", a, b)
				}
			}
		}
	}
}

func TestComparingDoesNotModifyItsOperands(t *testing.T) {
	text := []byte(`12.5,99`)
	compareNumbers(text[:4], []byte(`1000000000000000000000.25`))
	if string(text) != `12.5,99` {
		t.Errorf("now %s", text)
	}
}

// FuzzCompareNumbers compares with math/big, where that is feasible.
func FuzzCompareNumbers(f *testing.F) {
	f.Add("1", "1.0")
	f.Add("-1e5", "99999.9")
	f.Add("0.00", "-0e3")
	f.Fuzz(func(t *testing.T, a, b string) {
		x, okX := rational(a)
		y, okY := rational(b)
		if !okX || !okY {
			return
		}
		if got, want := compareNumbers([]byte(a), []byte(b)), x.Cmp(y); got != want {
			t.Fatalf("%s and %s compare as %d, not %d", a, b, want, got)
		}
	})
}

func rational(s string) (*big.Rat, bool) {
	if strings.Trim(s, "0123456789.eE+-") != "" || strings.HasPrefix(s, "+") || strings.HasPrefix(s, ".") {
		return nil, false
	}
	if i := strings.IndexAny(s, "eE"); i >= 0 && len(s)-i > 5 {
		return nil, false
	}
	return new(big.Rat).SetString(s)
}
