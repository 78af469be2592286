package policy_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"belfry/pkg/errs"
	"belfry/pkg/object"
	"belfry/pkg/store/policy"
)

func compileFields(t *testing.T, fields map[string]policy.FieldRule) *policy.Fields {
	t.Helper()
	f, problems := policy.CompileFields(policy.Rules{OwnerField: "user"}, fields)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return f
}

func parsed(t *testing.T, text string) object.Object {
	t.Helper()
	o, err := object.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// A field is read by those for whom its rule holds; a rule that can't be evaluated does not hold.
func TestMayReadField(t *testing.T) {
	f := compileFields(t, map[string]policy.FieldRule{
		"owned": {Read: "isOwner"}, "open": {Read: "true"}, "closed": {Read: " false "},
		"admins":    {Read: "user.admin == true"},
		"published": {Read: "object.published"}, "past": {Read: "now > timestamp('2020-01-01T00:00:00Z')"},
	}).With([]string{"private"}, []string{"kept"})
	ada, bob := parsed(t, `{"uuid":"ada","admin":true}`), parsed(t, `{"uuid":"bob"}`)
	stored := parsed(t, `{"uuid":"n","user":"ada"}`)
	names := []string{"owned", "open", "closed", "admins", "published", "past", "private", "kept", "other"}
	for _, of := range []struct {
		user   object.Object
		stored object.Object
		hidden string
		failed int
	}{
		{ada, stored, "closed published private", 1},
		{bob, stored, "owned closed admins published private", 2},
		{nil, stored, "owned closed admins published private", 2},
		{bob, parsed(t, `{"published":true,"user":"bob"}`), "closed admins private", 1},
	} {
		failed := 0
		r := f.For(policy.Input{User: of.user, Now: time.Now()}, func(err *policy.Denial) {
			failed++
			if !strings.Contains(err.Error(), "reading ") {
				t.Error(err)
			}
		})
		hidden, err := r.Hidden(t.Context(), names, of.stored)
		if err != nil || strings.Join(hidden, " ") != of.hidden || failed != of.failed {
			t.Errorf("%s: hidden %v, %d failed, %v; want %s, %d", of.user.Encode(), hidden, failed, err, of.hidden,
				of.failed)
		}
	}
	if !slices.Equal(f.Readers(), []string{"admins", "owned", "past", "published"}) {
		t.Error(f.Readers())
	}
	for name, want := range map[string]bool{"owned": true, "published": true, "admins": false, "past": false} {
		if f.NeedsObject(name) != want {
			t.Errorf("%s needs the object: %v", name, !want)
		}
	}
	for field, want := range map[string]bool{"published": true, "user": true, "admin": false} {
		if f.MayRead(func(name string) bool { return name == field }) != want {
			t.Errorf("a rule may read %s: %v", field, !want)
		}
	}
}

// A rule that does not depend on the object costs one evaluation, however many objects there are.
func TestRulesWithoutTheObjectAreEvaluatedOnce(t *testing.T) {
	f := compileFields(t,
		map[string]policy.FieldRule{"a": {Read: "user.missing == 1"}, "b": {Read: "object.missing == 1"}})
	failed := 0
	r := f.For(policy.Input{}, func(*policy.Denial) { failed++ })
	for range 10 {
		if hidden, err := r.Hidden(t.Context(), []string{"a", "b"}, object.Object{}); err != nil || len(hidden) != 2 {
			t.Fatal(hidden, err)
		}
	}
	if failed != 1+10 {
		t.Errorf("%d evaluations", failed)
	}
}

// The rules of fields share the budget of the request, and end with its context.
func TestRulesOfFieldsHaveABudget(t *testing.T) {
	f := compileFields(t, map[string]policy.FieldRule{
		"a": {Read: "object.list.all(x, object.list.all(y, x != y + 1000))",
			Write: "input.list.all(x, input.list.all(y, x != y + 1000))"},
	})
	large := object.Object{"list": []byte("[" + strings.Repeat("1,", 600) + "1]")}
	budget := policy.NewBudget()
	r := f.For(policy.Input{Budget: budget}, nil)
	err := error(nil)
	for i := 0; i < 10 && err == nil; i++ {
		_, err = r.MayRead(t.Context(), "a", large)
	}
	if !errors.Is(err, policy.ErrBudget) {
		t.Fatal(err)
	}
	if err := f.AllowWrite(t.Context(), policy.Update, "a", policy.Input{Input: large, Budget: budget}); !errors.Is(err,
		policy.ErrBudget) {
		t.Error(err)
	}
}

// A write rule is over the stored and the incoming object; what a user creates is theirs. The error names the field.
func TestAllowWriteOfField(t *testing.T) {
	f := compileFields(t, map[string]policy.FieldRule{
		"owned": {Write: "isOwner"}, "once": {Write: "object == null || !has(object.once)"},
		"small": {Write: "input.small < 3"}, "role": {Write: "user.role == 'admin'"}, "never": {Write: "false"},
	})
	ada, bob := parsed(t, `{"uuid":"ada"}`), parsed(t, `{"uuid":"bob","role":"admin"}`)
	stored := parsed(t, `{"user":"ada","once":1}`)
	for _, of := range []struct {
		op     policy.Op
		user   object.Object
		stored object.Object
		denied string
		kind   error
	}{
		{policy.Create, ada, nil, "never role small", errs.Denied},
		{policy.Update, ada, stored, "never once role small", errs.Denied},
		{policy.Update, bob, stored, "never once owned small", errs.Denied},
		{policy.Update, nil, stored, "never once owned role small", errs.Unauthenticated},
	} {
		var denied []string
		for _, name := range f.Writers() {
			err := f.AllowWrite(t.Context(), of.op, name,
				policy.Input{User: of.user, Object: of.stored, Input: parsed(t, `{"small":5}`)})
			if err == nil {
				continue
			}
			denied = append(denied, name)
			if !errors.Is(err, of.kind) || !strings.Contains(err.Error(), `"`+name+`"`) {
				t.Error(err)
			}
		}
		if strings.Join(denied, " ") != of.denied {
			t.Errorf("%s by %s: denied %v, want %s", of.op, of.user.Encode(), denied, of.denied)
		}
	}
}

// The short forms are rules: what clients send is ignored, but for read-only fields not what trusted clients send.
func TestShortFormsOfFields(t *testing.T) {
	var none *policy.Fields
	f := none.With([]string{"p"}, []string{"r", "p"})
	for _, of := range []struct {
		name                    string
		never, ignored, trusted bool
	}{{"p", true, true, true}, {"r", false, true, false}, {"x", false, false, false}} {
		if f.Never(of.name) != of.never || f.Ignores(of.name, false) != of.ignored ||
			f.Ignores(of.name, true) != of.trusted {
			t.Errorf("%s: %v %v %v", of.name, f.Never(of.name), f.Ignores(of.name, false), f.Ignores(of.name, true))
		}
	}
	if len(f.Readers())+len(f.Writers()) > 0 {
		t.Error(f.Readers(), f.Writers())
	}
}

func TestFieldProblems(t *testing.T) {
	_, problems := policy.CompileFields(policy.Rules{}, map[string]policy.FieldRule{
		"a": {Read: "input.x == 1"}, "b": {Read: "isOwner", Write: "1 +"}, "c": {Write: "'text'"},
	})
	var got []string
	for _, p := range problems {
		got = append(got, p.Field+"."+p.Access)
	}
	if strings.Join(got, " ") != "a.read b.read b.write c.write" {
		t.Error(problems)
	}
}

// What is refused without a login says so, and does not say that a login would help: the rule may deny then too, or be
// one that can't be evaluated.
func TestADenialWithoutALoginPromisesNothingFromOne(t *testing.T) {
	ann := parse(t, `{"uuid":"ann"}`)
	for _, rule := range []string{"false", "user != null && user.role == 'admin'", "object.none == 1",
		"user.role == 'admin'"} {
		p := compile(t, policy.Rules{Update: rule})
		f, problems := policy.CompileFields(policy.Rules{}, map[string]policy.FieldRule{"rank": {Write: rule}})
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		for _, of := range []struct {
			user    object.Object
			of      string
			refuse  func(policy.Input) error
			kind    errs.Kind
			message string
		}{
			{nil, "store", func(in policy.Input) error { return p.Allow(t.Context(), policy.Update, in) },
				errs.Unauthenticated,
				"the store's policy does not allow update without logging in; a login helps only if its rule allows " +
					"your user"},
			{ann, "store", func(in policy.Input) error { return p.Allow(t.Context(), policy.Update, in) }, errs.Denied,
				"the store's policy does not allow you to update this"},
			{nil, "field", func(in policy.Input) error { return f.AllowWrite(t.Context(), policy.Update, "rank", in) },
				errs.Unauthenticated,
				`the field "rank" may not be set to this value without logging in; a login helps only if its rule allows your user`},
			{ann, "field", func(in policy.Input) error { return f.AllowWrite(t.Context(), policy.Update, "rank", in) },
				errs.Denied, `you may not set the field "rank" to this value`},
		} {
			err := of.refuse(policy.Input{User: of.user, Object: parse(t, `{}`), Input: parse(t, `{"rank":1}`)})
			var e *errs.Error
			if !errors.As(err, &e) || e.Kind != of.kind || e.Message != of.message {
				t.Errorf("%s, %s of %v: %v, want %s", rule, of.of, of.user, err, of.message)
			}
		}
	}
}
