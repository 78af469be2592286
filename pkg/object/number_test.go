package object_test

import (
	"strings"
	"testing"

	"belfry/pkg/object"
)

func TestSameValue(t *testing.T) {
	for _, same := range [][]string{
		{`10`, `10.0`, `1e1`, `1E+1`, `100e-1`, `0.1e2`, `10.00e0`, `1e01`},
		{`0`, `-0`, `0.0`, `0e5`, `0e99999999999999999999`},
		{`-1.5`, `-15e-1`, `-1.50`},
		{`12345678901234567890`, `12345678901234567890.0`, `1.234567890123456789e19`},
		{`12345678901234567891`},
		{`0.1`, `1e-1`, `0.10`},
		{`0.10000000000000000000000001`},
		{`1e400`, `10e399`}, {`1e401`},
		{`1e99999999999999999999`}, {`1e99999999999999999998`},
		{`{"a":1,"b":[1.0,"é"]}`, `{"b":[1,"\u00e9"],"a":1e0}`},
		{`"😀"`, `"\ud83d\ude00"`}, {`"a/b"`, `"a\/b"`}, {`"10"`},
		{`[1,2]`, `[1.0,2.0]`}, {`[2,1]`}, {`[]`}, {`{}`}, {`null`}, {`true`}, {`false`}, {`"null"`}, {`{"a":null}`},
		{`[null]`}, {strings.Repeat("1", 300) + `.0`, strings.Repeat("1", 300)},
	} {
		for _, a := range same {
			for _, b := range same {
				if !object.SameValue([]byte(a), []byte(b)) {
					t.Errorf("%.40s and %.40s are not the same", a, b)
				}
			}
		}
	}
	for i, a := range []string{`10`, `"10"`, `1`, `0`, `-10`, `1e99999999999999999999`, `[10]`, `{"a":10}`, `true`,
		`null`, `1e400`, `12345678901234567891`} {
		for j, b := range []string{`10.0`, `"\u0031\u0030"`, `1.0`, `-0`, `-1e1`, `1e99999999999999999999`, `[1e1]`,
			`{"a":1e1}`, `true`, `null`, `10e399`, `12345678901234567891.0`} {
			if got := object.SameValue([]byte(a), []byte(b)); got != (i == j) {
				t.Errorf("%s and %s are the same: %v", a, b, got)
			}
		}
	}
	if object.SameValue(nil, []byte("null")) || !object.SameValue(nil, nil) || object.SameValue([]byte("0"), nil) {
		t.Error("nothing is null")
	}
}

// TestSameDigits: the order of properties and escapes make no difference, and any other digits do.
func TestSameDigits(t *testing.T) {
	for a, b := range map[string]string{`1.50`: `1.50`, `{"a":1,"b":[1.0,"é"]}`: `{"b":[1.0,"\u00e9"],"a":1}`,
		`"1.0"`: `"\u0031.0"`, `null`: `null`} {
		if !object.SameDigits([]byte(a), []byte(b)) {
			t.Errorf("%s and %s differ", a, b)
		}
	}
	for a, b := range map[string]string{`1`: `1.0`, `0`: `-0`, `[1]`: `[1e0]`, `{"a":{"b":10}}`: `{"a":{"b":1e1}}`,
		`null`: `0`} {
		if object.SameDigits([]byte(a), []byte(b)) {
			t.Errorf("%s and %s do not differ", a, b)
		}
	}
}
