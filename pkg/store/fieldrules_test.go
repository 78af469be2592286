package store_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/object"
	"belfry/pkg/store"
	"belfry/pkg/store/policy"
	"belfry/pkg/store/query"
)

func fieldsOf(t *testing.T, rules map[string]policy.FieldRule) *policy.Fields {
	t.Helper()
	f, problems := policy.CompileFields(policy.Rules{OwnerField: "user"}, rules)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return f
}

// What a client receives of an object by a get, a list and the reply to a write has the fields that they may read.
func TestFieldsThatARuleHidesAreInNoReply(t *testing.T) {
	s, out := open(t, store.Options{
		Policy: compile(t, policy.Rules{OwnerField: "user", Create: "true"}), Private: []string{"secret"},
		Fields: fieldsOf(t, map[string]policy.FieldRule{"phone": {Read: "isOwner"}, "mail": {Read: "user != null"},
			"odd": {Read: "object.none == 1"}}),
		ClientUUIDs: true,
	})
	save(t, s, "a", `{"user":"ada","phone":"1","mail":"2","odd":"3","secret":"4","name":"5"}`)
	if o := string(out.events[0].Object); !strings.Contains(o, `"phone"`) || strings.Contains(o, `"secret"`) {
		t.Errorf("the event has %s", o)
	}
	for who, want := range map[string]string{"ada": "mail name phone", "bob": "mail name", "": "name"} {
		ctx := client(t.Context())
		if who != "" {
			ctx = as(t.Context(), who)
		}
		got, err := s.Get(ctx, "a")
		if err != nil {
			t.Fatal(err)
		}
		put, err := s.Update(ctx, parse(t, `{"name":"5"}`), store.UpdateOptions{UUID: "a"})
		if err != nil {
			t.Fatal(err)
		}
		list, err := s.List(ctx, store.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for way, o := range map[string]store.Stored{"get": got, "update": put, "list": list.Objects[0]} {
			var names []string
			for _, name := range []string{"mail", "name", "odd", "phone", "secret"} {
				if object.Field(o.Body, name) != nil {
					names = append(names, name)
				}
			}
			if strings.Join(names, " ") != want {
				t.Errorf("%s by %q shows %v, want %s", way, who, names, want)
			}
		}
	}
	trusted := store.WithCall(t.Context(), store.Call{Client: true, Trusted: true, Origin: event.OriginBus})
	o, err := s.Get(trusted, "a")
	if err != nil {
		t.Fatal(err)
	}
	is(t, o.Body, map[string]string{"phone": `"1"`, "odd": `"3"`, "secret": ""})
}

// An interceptor of get can't add a field that the caller may not read.
func TestFieldsThatARuleHidesAreNotAddedByAnInterceptor(t *testing.T) {
	s, _ := open(t, store.Options{
		Fields: fieldsOf(t, map[string]policy.FieldRule{"phone": {Read: "isOwner"}}),
		Interceptor: intercepting(func(r store.InterceptRequest) object.Object {
			if strings.Contains(string(r.Object), "phone") {
				t.Errorf("%s is asked about %s", r.Op, r.Object)
			}
			return object.Object{"phone": []byte(`"2"`), "seen": []byte("true")}
		}),
	})
	save(t, s, "a", `{"user":"ada","phone":"1"}`)
	o, err := s.Get(as(t.Context(), "bob"), "a")
	if err != nil {
		t.Fatal(err)
	}
	is(t, o.Body, map[string]string{"phone": "", "seen": "true"})
}

// Who may not read a field does not learn its value by writing: any value counts as a change.
func TestFieldsAreWrittenByThoseForWhomTheirRuleHolds(t *testing.T) {
	s, _ := open(t, store.Options{
		Policy: compile(t,
			policy.Rules{OwnerField: "user", Create: "true", Get: "isOwner || object.open == true"}),
		ClientUUIDs: true, Fields: fieldsOf(t, map[string]policy.FieldRule{
			"role": {Write: "user.uuid == 'root'"}, "diary": {Read: "isOwner", Write: "isOwner"},
			"drop": {Read: "isOwner"},
		}),
	})
	save(t, s, "a", `{"user":"ada","role":{"a":1,"b":"x"},"diary":"d","open":true}`)
	save(t, s, "shut", `{"user":"ada","role":"r"}`)
	update := func(who, uuid, text string, patch bool) error {
		_, err := s.Update(as(t.Context(), who), parse(t, text), store.UpdateOptions{UUID: uuid, Patch: patch})
		return err
	}
	for _, of := range []struct {
		who, uuid, text string
		patch           bool
		names           string // in the error; "" for none
	}{
		{"bob", "a", `{"role":"x"}`, false, "role"},
		{"bob", "a", `{"role":null}`, true, "role"},
		{"bob", "a", `{"role":{"c":1}}`, true, "role"},
		{"bob", "a", `{"role": {"b":"\u0078", "a":1}}`, false, ""},
		{"bob", "a", `{"role":{"a":1}}`, true, ""},
		{"bob", "a", `{"other":1}`, false, ""},
		{"root", "a", `{"role":{"a":1,"b":"x","c":2}}`, false, ""},
		{"bob", "a", `{"diary":"d"}`, false, "diary"},
		{"bob", "a", `{"diary":"d"}`, true, "diary"},
		{"bob", "a", `{"diary":"e"}`, false, "diary"},
		{"ada", "a", `{"diary":"e"}`, false, ""},
		{"bob", "a", `{"drop":"blind"}`, false, ""},
		{"bob", "shut", `{"role":"r"}`, false, "role"},
		{"ada", "shut", `{"role":"r"}`, false, ""},
	} {
		err := update(of.who, of.uuid, of.text, of.patch)
		if of.names == "" && err != nil || of.names != "" &&
			(!errors.Is(err, errs.Denied) || !strings.Contains(err.Error(), fmt.Sprintf("%q", of.names))) {
			t.Errorf("%s of %s by %s: %v", of.text, of.uuid, of.who, err)
		}
	}
	for text, denied := range map[string]bool{`{"role":"x"}`: true, `{"diary":"mine"}`: false} {
		if _, err := s.Save(as(t.Context(), "bob"), parse(t, text), ""); errors.Is(err, errs.Denied) != denied {
			t.Errorf("creating %s: %v", text, err)
		}
	}
	// A client may send back what it has read in another encoding, and it stays as it is stored.
	save(t, s, "n", `{"user":"ada","role":[10.0,{"a":"é","b":1}],"open":true}`)
	for _, c := range []struct{ who, text, want string }{
		{"bob", `{"role":[10,{"b":1e0,"a":"\u00e9"}]}`, `[10.0,{"a":"é","b":1}]`},
		{"bob", `{"role":[1e1,{"a":"\u00E9","b":1.0}]}`, `[10.0,{"a":"é","b":1}]`},
		{"root", `{"role":[10,{"a":"é","b":1}]}`, `[10,{"a":"é","b":1}]`},
	} {
		for _, patch := range []bool{false, true} {
			if err := update(c.who, "n", c.text, patch); err != nil {
				t.Errorf("%s by %s: %v", c.text, c.who, err)
			}
			o, err := s.Get(t.Context(), "n")
			if err != nil {
				t.Fatal(err)
			}
			is(t, o.Body, map[string]string{"role": c.want})
		}
	}
	kind(t, update("bob", "n", `{"role":[10.1,{"a":"é","b":1}]}`, false), errs.Denied)
	kind(t, update("bob", "a", `{"role":"x"}`, false), errs.Denied)
	_, err := s.Update(client(t.Context()), parse(t, `{"role":"x"}`), store.UpdateOptions{UUID: "a"})
	kind(t, err, errs.Unauthenticated)
	_, err = s.SettableByAnonymous(t.Context(), parse(t, `{"role":"x"}`))
	kind(t, err, errs.Denied)
	changed := func(store.Stored) (store.Mutation, error) {
		return store.Mutation{Fields: parse(t, `{"role":"x"}`)}, nil
	}
	_, err = s.Mutate(as(t.Context(), "bob"), "a", changed)
	kind(t, err, errs.Denied)
	_, err = s.GetAuthorized(as(t.Context(), "bob"), "a", policy.Update, parse(t, `{"role":[]}`))
	kind(t, err, errs.Denied)
	trusted := store.WithCall(t.Context(), store.Call{Client: true, Trusted: true})
	if _, err := s.Update(trusted, parse(t, `{"role":"x","diary":"f"}`), store.UpdateOptions{UUID: "a"}); err != nil {
		t.Error(err)
	}
}

// A list is filtered and sorted by a field with a read rule only by those for whom it holds whatever the object is, and
// does not have the order of such a field either.
func TestFieldsThatARuleHidesDecideNoList(t *testing.T) {
	index := func(fields ...string) query.Index {
		return query.Index{Name: strings.Join(fields, ","), Fields: fields}
	}
	s, _ := open(t, store.Options{
		Indexes: []query.Index{index("salary"), index("phone"), index("team", "salary"),
			index("team", "name", "salary")},
		Fields: fieldsOf(t,
			map[string]policy.FieldRule{"phone": {Read: "isOwner"}, "salary": {Read: "user.uuid == 'root'"}}),
	})
	save(t, s, "a", `{"team":"x","salary":2,"phone":"1","name":"n"}`)
	save(t, s, "b", `{"team":"x","salary":1,"phone":"2","name":"n"}`)
	for _, of := range []struct {
		who, filter, sort string
		want              errs.Kind // 0: the objects
	}{
		{"root", "salary > 0", "", 0},
		{"root", "", "-salary", 0},
		{"root", `team == "x"`, "", 0},
		{"root", `phone == "1"`, "", errs.Invalid},
		{"bob", "salary > 0", "", errs.Denied},
		{"bob", "", "salary", errs.Denied},
		{"bob", `team == "x" && salary > 0`, "", errs.Denied},
		{"bob", "", "phone", errs.Invalid},
		{"bob", `team == "x"`, "", errs.Invalid}, // no index without salary
		{"bob", `team == "x" && name == "n"`, "", errs.Invalid},
		{"", "salary > 0", "", errs.Unauthenticated},
		{"", "", "", 0},
	} {
		ctx := client(t.Context())
		if of.who != "" {
			ctx = as(t.Context(), of.who)
		}
		list, err := s.List(ctx, store.ListOptions{Filter: of.filter, Sort: of.sort})
		if of.want != 0 {
			kind(t, err, of.want)
		} else if err != nil || len(list.Objects) != 2 {
			t.Errorf("%+v: %v, %d objects", of, err, len(list.Objects))
		}
	}
	if _, err := s.List(t.Context(), store.ListOptions{Filter: `team == "x" && salary > 0`}); err != nil {
		t.Error(err)
	}
}

// Where the budget of a request ends in the rules of fields, the page of a list ends with a cursor; a get is refused,
// and the reply to a write has the uuid alone.
func TestFieldsWhoseRulesCostTooMuch(t *testing.T) {
	s, _ := open(t, store.Options{
		Fields: fieldsOf(t,
			map[string]policy.FieldRule{"x": {Read: "object.list.all(a, object.list.all(b, a != b + 1000))"}}),
	})
	for i := range 10 {
		save(t, s, fmt.Sprint(i), `{"x":1,"list":[`+strings.Repeat("1,", 600)+`1]}`)
	}
	call := store.Call{Client: true, RuleBudget: policy.NewBudget()}
	ctx := store.WithCall(t.Context(), call)
	list, err := s.List(ctx, store.ListOptions{})
	if err != nil || len(list.Objects) == 0 || len(list.Objects) == 10 || list.Next == "" {
		t.Errorf("%d objects, cursor %q, %v", len(list.Objects), list.Next, err)
	}
	_, err = s.Get(ctx, "0")
	kind(t, err, errs.Limited)
	o, err := s.Update(ctx, parse(t, `{"y":1}`), store.UpdateOptions{UUID: "0"})
	if err != nil || string(o.Body) != `{"uuid":"0"}` {
		t.Errorf("%s, %v", o.Body, err)
	}
}

// intercepting is an interceptor of one function.
type intercepting func(store.InterceptRequest) object.Object

func (f intercepting) Intercept(_ context.Context, r store.InterceptRequest) (object.Object, error) {
	return f(r), nil
}
