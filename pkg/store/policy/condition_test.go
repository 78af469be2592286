package policy_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"belfry/pkg/store/policy"
)

func TestConditions(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		expression, object string
		want               bool
	}{
		{"source.published == true", `{"published":true}`, true},
		{"source.published == true", `{"published":false}`, false},
		{"source.published == true", `{"published":"true"}`, false},
		{"source.published", `{"published":true}`, true},
		// What can't be evaluated does not hold.
		{"source.published", `{"published":1}`, false},
		{"source.published", `{}`, false},
		{"!source.draft", `{}`, false},
		{"source.draft != true", `{}`, false},
		{"!has(source.draft) || !source.draft", `{}`, true},
		{"source.a.b > 1", `{"a":null}`, false},
		{"source.year / source.zero > 1", `{"year":1,"zero":0}`, false},
		{`source["a-b"] == 1`, `{"a-b":1}`, true},
		{"source.tags.exists(t, t == 'x')", `{"tags":["y","x"]}`, true},
		{"source.n == 1990", `{"n":1990.0}`, true},
		{"true", `{}`, true},
	} {
		condition, problems := policy.CompileCondition(c.expression)
		if len(problems) > 0 {
			t.Fatalf("%s: %v", c.expression, problems)
		}
		if got := condition.Holds([]byte(c.object)); got != c.want {
			t.Errorf("%s of %s: %v", c.expression, c.object, got)
		}
	}
}

func TestAConditionSeesNothingButTheObject(t *testing.T) {
	t.Parallel()
	for expression, want := range map[string]string{
		"source.owner == user.uuid":      "1:17: undeclared reference to 'user'",
		"timestamp(source.until) > now":  "1:27: undeclared reference to 'now'",
		"source.a &&\n object.b":         "2:2: undeclared reference to 'object'",
		"input.a":                        "1:1: undeclared reference to 'input'",
		"isOwner":                        "1:1: undeclared reference to 'isOwner'",
		"size(source) > 1":               "1:6: a condition names the fields that it reads",
		"source == source.copy":          "1:1: a condition names the fields that it reads",
		"source[source.name] == 1":       "1:1: a condition names the fields that it reads",
		"source.all(k, k != 'draft')":    "1:1: a condition names the fields that it reads",
		"[1].exists(source, source > 0)": "1:20: a condition names the fields that it reads",
		"source.title.matches(source.p)": "1:28: the pattern of matches must be a string literal",
		"'yes'":                          "1:1: the expression must be true or false",
		"source.title ==":                "Syntax error",
		"source.a.matches('" + strings.Repeat("a", 300) + "')": "program size",
	} {
		condition, problems := policy.CompileCondition(expression)
		var got []string
		for _, p := range problems {
			got = append(got, fmt.Sprintf("%d:%d: %s", p.Line, p.Column, p.Message))
		}
		if condition != nil || !slices.ContainsFunc(got, func(s string) bool { return strings.Contains(s, want) }) {
			t.Errorf("%s: %q, want %q", expression, got, want)
		}
	}
}

func TestAConditionKnowsTheFieldsThatItReads(t *testing.T) {
	t.Parallel()
	condition, problems := policy.CompileCondition(`has(source.a) && source.b.c == 1 && source["d"].size() > 0`)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	if got := condition.Fields(); !slices.Equal(got, []string{"a", "b", "d"}) {
		t.Error(got)
	}
}

// TestAConditionHasTheSameResultEachTime has conditions that depend on the order of a map, of which Go's is random.
func TestAConditionHasTheSameResultEachTime(t *testing.T) {
	t.Parallel()
	var fields []string
	for i := range 40 {
		fields = append(fields, fmt.Sprintf(`"f%02d":%d`, 39-i, i))
	}
	body := []byte(`{"m":{` + strings.Join(fields, ",") + `},"l":[` +
		strings.TrimSuffix(strings.Repeat("1,", 2000), ",") + `]}`)
	for expression, want := range map[string]bool{
		"source.m.map(k, k)[0] == 'f00'":                                   true,
		"source.m.map(k, source.m[k])[39] == 0":                            true,
		"source.m.exists(k, k == 'f39' || source.l.all(a, source.l != a))": true,
	} {
		condition, problems := policy.CompileCondition(expression)
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		first := condition.Holds(body)
		for range 20 {
			if condition.Holds(body) != first {
				t.Fatalf("%s differs", expression)
			}
		}
		if strings.Contains(expression, "map(") && first != want {
			t.Errorf("%s: %v", expression, first)
		}
	}
}

func TestTheCostOfAConditionIsBounded(t *testing.T) {
	t.Parallel()
	body := hostile(t).Encode()
	for _, expression := range []string{
		"source.l.all(a, source.l.all(b, a == b))",
		"source.l.all(a, source.nested == source.nested)",
		"source.l.all(a, !source.s.matches('(a*)*b'))",
	} {
		condition, problems := policy.CompileCondition(expression)
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		if condition.Holds(body) { // each is true of the object, after minutes
			t.Errorf("%s holds: the limit is missing", expression)
		}
	}
}
