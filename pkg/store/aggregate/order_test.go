package aggregate

import (
	"bytes"
	"strings"
	"testing"

	"belfry/pkg/store/driver"
)

// Values in the order of lists: all of them have keys in this order, exactly.
func TestOrderIsThatOfLists(t *testing.T) {
	long := strings.Repeat("a", 300)
	sorted := []string{
		`false`, `true`,
		`-1e300`, `-12345678901234567891`, `-12345678901234567890`, `-0.123`, `-0.12`, `-1e-300`, `0`, `1e-300`, `0.12`,
		`0.123`, `1`, `9`, `10`, `9007199254740992`, `9007199254740993`, `9007199254740993.5`, `1e300`, `1e999`,
		`""`, `"A"`, `"a"`, `"a\u0000"`, `"a\u0001"`, `"` + long + `"`, `"` + long + `b"`, `"ab"`, `"é"`, `"😀"`,
	}
	for i, a := range sorted {
		for j, b := range sorted {
			x, okX := orderOf([]byte(a))
			y, okY := orderOf([]byte(b))
			if !okX || !okY {
				t.Fatalf("%s or %s has no key", a, b)
			}
			want := min(1, max(-1, i-j))
			if got := bytes.Compare(x, y); got != want {
				t.Errorf("%s and %s compare as %d, want %d", a, b, got, want)
			}
			if got := compareParts(parts(x), parts(y)); got != want {
				t.Errorf("the keys of %s and %s compare as %d, want %d", a, b, got, want)
			}
		}
	}
}

func compareParts(a, b [][]byte) int {
	for i := range a {
		if c := bytes.Compare(a[i], b[i]); c != 0 {
			return c
		}
	}
	return 0
}

func TestValuesWithoutKeys(t *testing.T) {
	for value, want := range map[string]string{
		`null`: "", `[1]`: "", `{"a":1}`: "", "": "",
		`"` + strings.Repeat("a", maxOrder-1) + `"`: `"` + strings.Repeat("a", maxOrder-1) + `"`,
		`"` + strings.Repeat("a", maxOrder) + `"`:   "null", `1` + strings.Repeat("2", 800): "null",
		`5.0`: "5", `"\u0061"`: `"a"`, `1e99999999999999999999`: "null",
	} {
		if got := string(orderedValue([]byte(value))); got != want {
			t.Errorf("%.40s is kept as %.40s, want %.40s", value, got, want)
		}
	}
}

func TestKeysFitADriver(t *testing.T) {
	spec := Spec("x")
	if err := spec.Check(); err != nil {
		t.Fatal(err)
	}
	body := []byte(`{"n":1,"t":"` + strings.Repeat("a", maxOrder-1) + `"}`)
	c := Place{Source: "S", Target: "t"}.NewContribution("x", NewValues(body, nil, []string{"n", "t", "missing"}))
	all := keys(c.Encode())
	if len(all) != 3 {
		t.Errorf("%d keys", len(all))
	}
	for _, k := range all {
		for _, part := range k.Parts {
			if len(part) > driver.MaxPart {
				t.Errorf("a part of %s has %d bytes", k.Index, len(part))
			}
		}
	}
}
