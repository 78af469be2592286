package policy_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"belfry/pkg/errs"
	"belfry/pkg/object"
	"belfry/pkg/store/policy"
)

func parse(t *testing.T, text string) object.Object {
	t.Helper()
	if text == "" {
		return nil
	}
	o, err := object.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func compile(t *testing.T, r policy.Rules) *policy.Policy {
	t.Helper()
	p, problems := policy.Compile(r)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return p
}

func TestRules(t *testing.T) {
	for _, c := range []struct {
		rule                string
		user, object, input string
		want                errs.Kind // Internal: allowed
	}{
		{rule: "true"},
		{rule: "false", want: errs.Unauthenticated},
		{rule: "false", user: `{"uuid":"u"}`, want: errs.Denied},
		{rule: "user != null", want: errs.Unauthenticated},
		{rule: "user != null", user: `{"uuid":"u"}`},
		{rule: "object.owner == user.uuid", user: `{"uuid":"u"}`, object: `{"owner":"u"}`},
		{rule: "object.owner == user.uuid", user: `{"uuid":"u"}`, object: `{"owner":"v"}`, want: errs.Denied},
		{rule: "object.owner == user.uuid", object: `{"owner":"u"}`, want: errs.Unauthenticated},
		{rule: "object.owner == user.uuid", user: `{"uuid":"u"}`, object: `{}`, want: errs.Denied},
		{rule: "object.n", object: `{"n":1}`, want: errs.Unauthenticated},
		{rule: "object.flag", object: `{"flag":true}`},
		{rule: "object.flag", object: `{"flag":"yes"}`, want: errs.Unauthenticated},
		{rule: "input.year > 1900", input: `{"year":1990}`},
		{rule: "input.year > 1900", input: `{"year":1990.5}`},
		{rule: "input.year > 1900", input: `{"year":1.99e3}`},
		{rule: "input.year == 1990", input: `{"year":1990.0}`},
		{rule: "input.year > 1900", input: `{"year":"1990"}`, want: errs.Unauthenticated},
		{rule: "input.n < 1e300", input: `{"n":1e999}`, want: errs.Unauthenticated},
		{rule: "has(input.a) && 'x' in input.tags", input: `{"a":null,"tags":["x"]}`},
		{rule: "input.deep.er[1].x == 'y'", input: `{"deep":{"er":[0,{"x":"y"}]}}`},
		{rule: "now > timestamp('2020-01-01T00:00:00Z')"},
		{rule: "input.a == null", input: `{"a":null}`},
		{rule: "input.n > 5", input: `{"n":1e999}`},
		{rule: "input.n == 9007199254740993", input: `{"n":9007199254740993}`},
		{rule: "input.n == 9007199254740993", input: `{"n":9007199254740992}`, want: errs.Unauthenticated},
		{rule: "type(input.n) == int && type(input.m) == double", input: `{"n":-2.0,"m":-2.5}`},
		{rule: "input.s == 'é\"'", input: `{"s":"\u00e9\""}`},
		{rule: "object == null && input != null", input: `{}`},
		{rule: "has(object.a)", want: errs.Unauthenticated},
		{rule: "!has(object.a) && has(object.b)", object: `{"b":null}`},
		{rule: "'b' in object && !('a' in object) && !(1 in object)", object: `{"b":1}`},
		{rule: "object['b'] == 1", object: `{"b":1}`},
		{rule: "object[1] == 1", object: `{"b":1}`, want: errs.Unauthenticated},
		{rule: "object['a'] == 1", object: `{"b":1}`, want: errs.Unauthenticated},
		{rule: "size(object) == 2 && object.all(k, object[k] > 0)", object: `{"a":1,"b":2}`},
		{rule: "object == input && input == {'a': [1, {'b': true}]}", object: `{"a":[1,{"b":true}]}`,
			input: `{"a":[1.0,{"b":true}]}`},
		{rule: "object != input", object: `{"a":[1]}`, input: `{"a":[2]}`},
		{rule: "input.tags.all(t, t in object.tags)", object: `{"tags":["a","b"]}`, input: `{"tags":["b"]}`},
		{rule: "input.mail.matches('^[^@]+@example[.]com$')", input: `{"mail":"me@example.com"}`},
		{rule: "object.gone == 1 || true"},
	} {
		p := compile(t, policy.Rules{Update: c.rule})
		in := policy.Input{User: parse(t, c.user), Object: parse(t, c.object), Input: parse(t, c.input),
			Now: time.Now()}
		err := p.Allow(t.Context(), policy.Update, in)
		if c.want == errs.Internal && err != nil ||
			c.want != errs.Internal && (err == nil || errs.KindOf(err) != c.want) {
			t.Errorf("%s with user %s, object %s, input %s: %v, want %v", c.rule, c.user, c.object, c.input, err,
				c.want)
		}
	}
}

func TestProblemsHavePositions(t *testing.T) {
	for rule, want := range map[string]string{
		"object.owner ==":          "Syntax error",
		"usr.uuid == object.owner": "undeclared reference to 'usr'",
		"true &&\n  nobody(1)":     "undeclared reference to 'nobody'",
		"'a string'":               "must be true or false, not of type string",
		"1 + 1":                    "must be true or false, not of type int",
		"now == 5":                 "no matching overload",
		"'a'.matches('(')":         "error parsing regexp",
		"'a'.matches('a{999}')":    "regex program size",
		"'a'.matches(input.p)":     "must be a string literal",
	} {
		p, problems := policy.Compile(policy.Rules{Create: "true", Delete: rule})
		if p != nil || len(problems) == 0 {
			t.Errorf("%s: no problem", rule)
			continue
		}
		if got := problems[0]; got.Op != policy.Delete || got.Line < 1 || got.Column < 1 ||
			!strings.Contains(got.Message, want) {
			t.Errorf("%s: %+v, want %q", rule, got, want)
		}
	}
	_, problems := policy.Compile(policy.Rules{Delete: "true &&\n  nobody(1)"})
	if problems[0].Line != 2 || problems[0].Column != 9 {
		t.Errorf("the place is %d:%d, want 2:9", problems[0].Line, problems[0].Column)
	}
}

func TestOwner(t *testing.T) {
	p := compile(t, policy.Rules{Owner: true})
	me, other := `{"uuid":"me"}`, `{"uuid":"other"}`
	for _, c := range []struct {
		op           policy.Op
		user, object string
		want         errs.Kind
	}{
		{op: policy.Create, want: errs.Unauthenticated},
		{op: policy.Create, user: me},
		{op: policy.Get, user: me, object: `{"user":"me"}`},
		{op: policy.Get, user: me, object: `{"uuid":"me"}`, want: errs.Denied},
		{op: policy.Get, user: other, object: `{"user":"me"}`, want: errs.Denied},
		{op: policy.Get, object: `{"user":"me"}`, want: errs.Unauthenticated},
		{op: policy.Get, object: `{"user":"me","public":true}`},
		{op: policy.Get, object: `{"user":"me","public":"true"}`, want: errs.Unauthenticated},
		{op: policy.List, object: `{"user":"me","public":true}`},
		{op: policy.List, user: other, object: `{"user":"me"}`, want: errs.Denied},
		{op: policy.Update, user: other, object: `{"user":"me","public":true}`, want: errs.Denied},
		{op: policy.Update, user: me, object: `{"user":"me"}`},
		{op: policy.Delete, user: me, object: `{"user":["me"]}`, want: errs.Denied},
		{op: policy.Delete, user: `{}`, object: `{}`, want: errs.Denied},
	} {
		err := p.Allow(t.Context(), c.op, policy.Input{User: parse(t, c.user), Object: parse(t, c.object)})
		if c.want == errs.Internal && err != nil || c.want != errs.Internal && (err == nil || errs.KindOf(err) != c.want) {
			t.Errorf("%s by %s of %s: %v, want %v", c.op, c.user, c.object, err, c.want)
		}
	}
	overridden := compile(t, policy.Rules{Owner: true, Create: "false"})
	if err := overridden.Allow(t.Context(), policy.Create, policy.Input{User: parse(t, me)}); !errors.Is(err,
		errs.Denied) {
		t.Errorf("an expression beside owner wins: %v", err)
	}
}

// TestIsOwner: the owner field alone says who the owner is, in expressions too; a user is their own owner.
func TestIsOwner(t *testing.T) {
	mixed := compile(t, policy.Rules{OwnerField: "by", Create: "isOwner", Get: "isOwner || object.public == true",
		Update: "isOwner && !has(object.locked)"})
	users := compile(t, policy.Rules{Users: true, Get: "isOwner", Update: "isOwner"})
	me := parse(t, `{"uuid":"me"}`)
	for _, c := range []struct {
		p      *policy.Policy
		op     policy.Op
		user   object.Object
		object string
		want   bool
	}{
		{p: mixed, op: policy.Create, user: me, want: true},
		{p: mixed, op: policy.Create},
		{p: mixed, op: policy.Get, user: me, object: `{"by":"me"}`, want: true},
		{p: mixed, op: policy.Get, user: me, object: `{"by":"you","public":true}`, want: true},
		{p: mixed, op: policy.Get, user: me, object: `{"by":"you","public":false}`},
		{p: mixed, op: policy.Get, user: me, object: `{"uuid":"me","user":"me","public":false}`},
		{p: mixed, op: policy.Get, object: `{"by":"me","public":false}`},
		{p: mixed, op: policy.Get, object: `{"public":false}`},
		{p: mixed, op: policy.List, user: me, object: `{"by":"me"}`, want: true},
		{p: mixed, op: policy.Update, user: me, object: `{"by":"me"}`, want: true},
		{p: mixed, op: policy.Update, user: me, object: `{"by":"me","locked":1}`},
		{p: mixed, op: policy.Update, user: me, object: `{"by":["me"]}`},
		{p: users, op: policy.Update, user: me, object: `{"uuid":"me"}`, want: true},
		{p: users, op: policy.Update, user: me, object: `{"uuid":"you","user":"me"}`},
	} {
		err := c.p.Allow(t.Context(), c.op, policy.Input{User: c.user, Object: parse(t, c.object)})
		if (err == nil) != c.want {
			t.Errorf("%s by %v of %s: %v", c.op, c.user, c.object, err)
		}
	}
	if !mixed.NeedsObject(policy.Get) || !users.NeedsObject(policy.Update) || mixed.NeedsObject(policy.Create) {
		t.Error("isOwner is about the object, unless there is none yet")
	}
	if by := func(name string) bool { return name == "by" }; !mixed.MayRead(policy.Update, by) ||
		!mixed.MayRead(policy.List, by) || mixed.MayRead(policy.Delete, by) {
		t.Error("isOwner reads the owner field")
	}
	for rule, want := range map[string]string{"isOwner": "owner: user", "isowner": "undeclared"} {
		if _, problems := policy.Compile(policy.Rules{Get: rule}); len(problems) != 1 ||
			!strings.Contains(problems[0].Message, want) {
			t.Errorf("%s without an owner: %v", rule, problems)
		}
	}
}

func TestOpenAndNeedsObject(t *testing.T) {
	p := compile(t, policy.Rules{Get: "object.public", Create: "user != null"})
	if p.Open(policy.Get) || p.Open(policy.Create) || !p.Open(policy.Update) || !p.Open(policy.Delete) {
		t.Error("open is what has no rule")
	}
	if p.Open(policy.List) || !p.NeedsObject(policy.List) {
		t.Error("a list without a rule falls under that of get")
	}
	if p.NeedsObject(policy.Create) {
		t.Error("the rule of create does not mention the object")
	}
	listed := compile(t, policy.Rules{Get: "object.public", List: "user != null"})
	if listed.NeedsObject(policy.List) {
		t.Error("a list's own rule counts")
	}
	owner := compile(t, policy.Rules{Owner: true})
	if owner.Open(policy.List) || !owner.NeedsObject(policy.Get) || owner.NeedsObject(policy.Create) {
		t.Error("the owner's rules are about the object")
	}
}

func TestADenialSaysWhichRuleDeniesWithoutValues(t *testing.T) {
	for rule, reason := range map[string]string{
		"timestamp(input.pin) < now": "timestamp", "int(input.pin) > 0": "'string' to 'int'",
		"input[input.pin] == 1": "no such key", "input.missing == 1": "no such key: missing", "input.pin == '1'": "",
	} {
		p := compile(t, policy.Rules{Update: rule})
		err := p.Allow(t.Context(), policy.Update, policy.Input{Input: parse(t, `{"pin":"hunter2"}`)})
		var denial *policy.Denial
		if !errors.Is(err, errs.Unauthenticated) || !errors.As(err, &denial) || denial.Op != policy.Update ||
			denial.Expression != rule {
			t.Fatalf("%s: %v", rule, err)
		}
		if text := err.Error(); strings.Contains(text, "hunter2") || !strings.Contains(denial.Reason, reason) ||
			(denial.Reason == "") != (reason == "") {
			t.Errorf("%s: %s", rule, text)
		}
	}
}

func TestADenialOfAListNamesTheRuleOfGet(t *testing.T) {
	for want, rules := range map[policy.Denial]policy.Rules{
		{Op: policy.Get, Expression: "false"}:  {Get: "false"},
		{Op: policy.List, Expression: "false"}: {Get: "true", List: "false"},
		{Op: policy.Get}:                       {Owner: true},
	} {
		var denial *policy.Denial
		err := compile(t, rules).Allow(t.Context(), policy.List, policy.Input{})
		if !errors.As(err, &denial) || *denial != want {
			t.Errorf("%+v: %v", rules, err)
		}
	}
}

func TestACanceledRequestIsNotDenied(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	p := compile(t, policy.Rules{Get: "user != null"})
	if err := p.Allow(ctx, policy.Get, policy.Input{}); errs.KindOf(err) != errs.Canceled {
		t.Error(err)
	}
}

func TestConcurrentUse(t *testing.T) {
	p := compile(t, policy.Rules{Get: "object.n == 1 && user == null"})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 100 {
				if err := p.Allow(context.Background(), policy.Get,
					policy.Input{Object: object.Object{"n": []byte("1")}}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}
