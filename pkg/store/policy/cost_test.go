package policy_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"belfry/pkg/errs"
	"belfry/pkg/object"
	"belfry/pkg/store/policy"
	"belfry/test/kit"
)

// hostile is an object of 256 KiB made to be slow: a list whose elements are
// all alike, lists in lists, a long string.
func hostile(t testing.TB) object.Object {
	t.Helper()
	repeat := func(element string, n int) string {
		return "[" + strings.TrimSuffix(strings.Repeat(element+",", n), ",") + "]"
	}
	text := fmt.Sprintf(`{"l":%s,"nested":%s,"s":%q,"zone":"Europe/Nowhere"}`,
		repeat("1", 50_000), repeat("[[1]]", 10_000), strings.Repeat("a", 90_000))
	o, err := object.Parse([]byte(text))
	if err != nil || len(text) > 256<<10 {
		t.Fatalf("%d bytes, %v", len(text), err)
	}
	return o
}

// TestEvaluationCostIsBounded evaluates plausible rules on an object for which each
// would take minutes or gigabytes without the limit.
func TestEvaluationCostIsBounded(t *testing.T) {
	o := hostile(t)
	for _, rule := range []string{
		"input.l.all(a, input.l.all(b, a == b))",
		"input.l.all(a, !(2 in input.l))",
		"input.l.all(a, a in input.l && !('x' in input.l))",
		"input.l.all(a, input.nested == input.nested)",
		"input.l.all(a, input == input)",
		"input.l.all(a, {'x': input.nested} != {'x': 1})",
		"input.l.map(a, input.s + input.s).size() == 50000",
		"input.l.map(a, input.l).map(b, b + b).all(b, 2 in b)",
		"input.l.all(a, input.s.contains('b') || true)",
		"input.l.all(a, input.s <= input.s)",
		"input.l.all(a, input.s.size() > 0)",
		"input.l.all(a, string(bytes(input.s)) != '')",
		"input.l.all(a, timestamp(input.s) < now || true)",
		"input.l.all(a, now.getFullYear(input.zone) > 0 || true)",
		"input.l.all(a, !input.s.matches('(a*)*b'))",
		"input.l.all(a, !input.s.matches('(a?){3}b'))",
	} {
		t.Run(rule, func(t *testing.T) {
			t.Parallel()
			p := compile(t, policy.Rules{Create: rule})
			// The context bounds a test that fails; it is not what ends a rule.
			ctx, cancel := kit.Patience(t.Context(), time.Minute)
			defer cancel()
			if err := p.Allow(ctx, policy.Create, policy.Input{Input: o, Now: time.Now()}); !errors.Is(err,
				errs.Unauthenticated) {
				t.Errorf("%v, want it to be denied at the limit", err)
			}
		})
	}
}

func TestLargeObjectsAreEvaluated(t *testing.T) {
	o := hostile(t)
	for _, rule := range []string{
		"input.l.all(a, a == 1)",
		"1 in input.l && !(2 in input.l)",
		"input.nested == input.nested",
		"input.s.contains('a') && input.s.size() == 90000",
		"!input.s.matches('b')",
		"input == input",
	} {
		p := compile(t, policy.Rules{Create: rule})
		if err := p.Allow(t.Context(), policy.Create, policy.Input{Input: o}); err != nil {
			t.Errorf("%s: %v", rule, err)
		}
	}
}

// TestLoopsReadObjectsWithinValuesOnce: a loop pays for a step when it reads an object within a value, so each of its
// rounds must not take as long as the object is large. These rules take minutes if it does.
func TestLoopsReadObjectsWithinValuesOnce(t *testing.T) {
	numbers := func(n int) string { return "[" + strings.Repeat("1,", n-1) + "1]" }
	var names strings.Builder
	for i := range 8000 {
		fmt.Fprintf(&names, `,"n%d":1`, i)
	}
	o, err := object.Parse(
		[]byte(`{"l":` + numbers(30_000) + `,"m":{"l":` + numbers(50_000) + `,"o":{"x":1` + names.String() + `}}}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, rule := range []string{
		"input.l.all(a, size(input.m.l) > 0)",
		"input.l.all(a, !('x' in input.m))",
		"input.l.all(a, input.m.o.exists(name, true))",
	} {
		t.Run(rule, func(t *testing.T) {
			t.Parallel()
			p := compile(t, policy.Rules{Create: rule})
			done := make(chan error, 1)
			go func() { done <- p.Allow(t.Context(), policy.Create, policy.Input{Input: o}) }()
			var denied error
			if err := kit.Await(30*time.Second, func() error {
				select {
				case denied = <-done:
					return nil
				default:
					return errors.New("it is not evaluated")
				}
			}); err != nil || denied != nil {
				t.Error(err, denied)
			}
		})
	}
}

// FuzzRule: any expression is refused with a position, or its evaluation ends for any
// object, with the same result each time.
func FuzzRule(f *testing.F) {
	for _, seed := range [][2]string{
		{"object.owner == user.uuid", `{"owner":"u"}`},
		{"input.l.all(a, a in object.l) || now > timestamp(input.t)", `{"l":[1,"a",{}],"t":"2020-01-01T00:00:00Z"}`},
		{"object[input.k].n + 1.5 < 3 && size(object) == 2", `{"k":"o","o":{"n":1}}`},
		{"object.s.matches('a+')", `{"s":"aaa"}`},
		{"has(object.a.b) ? object.a.b : false", `{"a":{"b":true}}`},
	} {
		f.Add(seed[0], []byte(seed[1]))
	}
	f.Fuzz(func(t *testing.T, rule string, data []byte) {
		o, err := object.Parse(data)
		if err != nil || len(rule) > 1000 {
			return
		}
		p, problems := policy.Compile(policy.Rules{Update: rule})
		if (p == nil) != (len(problems) > 0) {
			t.Fatalf("policy %v with problems %v", p, problems)
		}
		if p == nil {
			return
		}
		in := policy.Input{User: object.Object{"uuid": []byte(`"u"`)}, Object: o, Input: o, Now: time.Unix(1e9, 0)}
		first, second := p.Allow(t.Context(), policy.Update, in), p.Allow(t.Context(), policy.Update, in)
		if first != nil && errs.KindOf(first) == errs.Internal || errs.KindOf(first) != errs.KindOf(second) {
			t.Fatalf("%v, then %v", first, second)
		}
	})
}

func BenchmarkCompile(b *testing.B) {
	for b.Loop() {
		if _, problems := policy.Compile(
			policy.Rules{Update: "object.owner == user.uuid && input.year > 1900"}); problems != nil {
			b.Fatal(problems)
		}
	}
}

func BenchmarkAllow(b *testing.B) {
	o, err := object.Parse([]byte(`{"uuid":"b","owner":"u","user":"u","title":"` + strings.Repeat("x", 350) + `"}`))
	if err != nil {
		b.Fatal(err)
	}
	in := policy.Input{User: object.Object{"uuid": []byte(`"u"`)}, Object: o}
	for name, rules := range map[string]policy.Rules{
		"none": {}, "owner": {Owner: true}, "rule": {Update: "object.owner == user.uuid"},
	} {
		b.Run(name, func(b *testing.B) {
			p, problems := policy.Compile(rules)
			if len(problems) > 0 {
				b.Fatal(problems)
			}
			b.ReportAllocs()
			for b.Loop() {
				if err := p.Allow(b.Context(), policy.Update, in); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
