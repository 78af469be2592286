package query_test

import (
	"testing"

	"belfry/pkg/store/query"
)

func TestExactTextsAreEqualAsTheirValuesAre(t *testing.T) {
	exact := func(value string) string {
		text, ok := query.AppendExact(nil, []byte(value))
		if !ok {
			t.Errorf("%s has no exact text", value)
		}
		return string(text)
	}
	for _, same := range [][]string{
		{`1`, `1.0`, `1e0`, `10e-1`, `0.1E+1`},
		{`0`, `-0`, `0.00`, `0e9`},
		{`-12.5`, `-1250e-2`},
		{`"a"`, `"\u0061"`},
		{`9007199254740993`, `9007199254740993.0`},
	} {
		for _, other := range same[1:] {
			if exact(same[0]) != exact(other) {
				t.Errorf("%s and %s differ", same[0], other)
			}
		}
	}
	all := []string{`1`, `-1`, `10`, `0.1`, `11`, `0`, `"1"`, `"+1e1"`, `"a"`, `"A"`, `""`, `"0"`, `true`, `false`,
		`"true"`, `"t"`, `9007199254740993`, `9007199254740992`, `"\u00e9"`, `"e\u0301"`}
	for i, a := range all {
		for _, b := range all[i+1:] {
			if exact(a) == exact(b) {
				t.Errorf("%s and %s are the same", a, b)
			}
		}
	}
	for _, value := range []string{``, `null`, `[1]`, `{"a":1}`} {
		if _, ok := query.AppendExact(nil, []byte(value)); ok {
			t.Errorf("%q has an exact text", value)
		}
	}
}
