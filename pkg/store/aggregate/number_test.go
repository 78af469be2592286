package aggregate

import (
	"encoding/json"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"
)

func TestNumbersHaveOneText(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"0", "0"}, {"-0.00e9", "0"}, {"1", "1"}, {"1.0", "1"}, {"10e-1", "1"}, {"-12.50", "-12.5"}, {"1200", "1200"},
		{"12e2", "1200"}, {"0.05", "0.05"}, {"0.000001", "0.000001"}, {"0.0000001", "1e-7"}, {"-1.5E-9", "-1.5e-9"},
		{"1" + strings.Repeat("0", 33), "1" + strings.Repeat("0", 33)}, {"1" + strings.Repeat("0", 34), "1e34"},
		{"12345678901234567890.5", "12345678901234567890.5"}, {"1.25e400", "1.25e400"},
	} {
		n, ok := parseNumber([]byte(c.text))
		got := string(n.text())
		if !ok || got != c.want || !json.Valid([]byte(got)) {
			t.Errorf("%s is written %s, want %s", c.text, got, c.want)
		}
	}
	if _, ok := parseNumber([]byte("1e99999999999999999999")); ok {
		t.Error("an exponent that can't be read is read")
	}
}

func TestSummableNumbers(t *testing.T) {
	for text, want := range map[string]bool{
		"0": true, "1e99": true, "9.9e99": true, "1e100": false, "1e-100": true, "9e-101": false, "-1e-100": true,
		strings.Repeat("9", 34): true, strings.Repeat("9", 35): false, "1" + strings.Repeat("0", 50): true,
	} {
		if n, _ := parseNumber([]byte(text)); n.isSummable() != want {
			t.Errorf("%s: %v, want %v", text, !want, want)
		}
	}
}

// A sum is that of exact arithmetic, in any order, and what is added and removed leaves nothing.
func TestSumsAreExact(t *testing.T) {
	texts := []string{"0.1", "0.2", "-0.3", "1e99", "1e-100", "-1e99", "12345678901234567890.123", "0", "7e12"}
	var a Accumulator
	exact := new(big.Rat)
	for i := range 2000 {
		text := texts[rand.IntN(len(texts))]
		v := NewValues([]byte(`{"n":`+text+`}`), []string{"n"}, nil)
		r, _ := new(big.Rat).SetString(text)
		times := int64(1)
		if i%3 == 0 {
			times, r = -1, r.Neg(r)
		}
		a.add(v, times)
		exact.Add(exact, r)
		got, ok := new(big.Rat).SetString(totalOf(a.Sums["n"].Total).String())
		if !ok || got.Cmp(exact) != 0 {
			t.Fatalf("the sum is %v, want %v", got, exact)
		}
	}
}

func TestSumsThatCanNotBeWritten(t *testing.T) {
	values := func(text string) *Values { return NewValues([]byte(`{"n":`+text+`}`), []string{"n"}, nil) }
	var a Accumulator
	for _, step := range []struct {
		text  string
		times int64
		want  string
	}{
		{`5`, 1, "5"}, {`"5"`, 1, "5"}, {`null`, 1, "5"}, {`[1]`, 1, "5"}, {`true`, 1, "5"},
		{`1e100`, 1, ""}, {`1`, 1, ""}, {`1e100`, -1, "6"},
		{`1e40`, 1, ""}, {`1e40`, -1, "6"}, {`5`, -1, "1"}, {`1`, -1, "0"},
	} {
		a.add(values(step.text), step.times)
		if got := string(a.Sum("n")); got != step.want {
			t.Errorf("after %+v the sum is %q", step, got)
		}
	}
	if len(a.Sums) != 0 {
		t.Errorf("sums are left of nothing: %v", a.Sums)
	}
}
