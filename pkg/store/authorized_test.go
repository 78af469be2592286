package store_test

import (
	"context"
	"slices"
	"testing"

	"belfry/pkg/errs"
	"belfry/pkg/object"
	"belfry/pkg/store"
	"belfry/pkg/store/policy"
)

// refusing is an interceptor that refuses, and says what it was asked about.
type refusing struct{ asked []string }

func (r *refusing) Intercept(_ context.Context, q store.InterceptRequest) (object.Object, error) {
	r.asked = append(r.asked, q.Op)
	return nil, errs.New(errs.Denied, "the library is closed")
}

func TestGetAuthorizedReturnsAllFieldsToAuthorizedCallers(t *testing.T) {
	rules, problems := policy.Compile(policy.Rules{Get: `object.title == "x"`,
		Update: `input.all(name, name == "covers")`})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	s, _ := open(t, store.Options{Policy: rules, Private: []string{"secret"}})
	for uuid, text := range map[string]string{"a": `{"title":"x","secret":1,"_kept":2}`, "b": `{"title":"y"}`} {
		if _, err := s.Save(t.Context(), parse(t, text), uuid); err != nil {
			t.Fatal(err)
		}
	}
	theirs := client(t.Context())
	for name, test := range map[string]struct {
		ctx   context.Context
		uuid  string
		op    policy.Op
		input string
		want  errs.Kind
	}{
		"no such object": {t.Context(), "none", policy.Get, `{}`, errs.NotFound},
		"rule of get":    {theirs, "b", policy.Get, `{}`, errs.Unauthenticated},
		"rule of update": {theirs, "a", policy.Update, `{"title":"z"}`, errs.Unauthenticated},
	} {
		if _, err := s.GetAuthorized(test.ctx, test.uuid, test.op, parse(t, test.input)); err == nil ||
			errs.KindOf(err) != test.want {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if _, err := s.GetAuthorized(t.Context(), "b", policy.Get, nil); err != nil {
		t.Errorf("the program itself: %v", err)
	}
	for op, input := range map[policy.Op]string{policy.Get: `{}`, policy.Update: `{"covers":[]}`} {
		o, err := s.GetAuthorized(theirs, "a", op, parse(t, input))
		if err != nil {
			t.Fatal(err)
		}
		is(t, o.Body, map[string]string{"title": `"x"`, "secret": "1", "_kept": "2"})
	}
}

func TestGetAuthorizedCallsTheInterceptorForGetOnly(t *testing.T) {
	interceptor := &refusing{}
	s, _ := open(t, store.Options{Interceptor: interceptor})
	if _, err := s.Save(t.Context(), parse(t, `{}`), "a"); err != nil {
		t.Fatal(err)
	}
	_, err := s.GetAuthorized(client(t.Context()), "a", policy.Get, nil)
	kind(t, err, errs.Denied)
	for _, ctx := range []context.Context{t.Context(), client(t.Context())} {
		if _, err := s.GetAuthorized(ctx, "a", policy.Update, nil); err != nil {
			t.Error(err)
		}
	}
	if !slices.Equal(interceptor.asked, []string{"get"}) {
		t.Errorf("asked were %q", interceptor.asked)
	}
}

func TestRulesSeeNoInternalFieldsOfAMutation(t *testing.T) {
	rules, problems := policy.Compile(
		policy.Rules{Update: `input.all(name, name == "covers") && (input.covers == null || input.covers.size() == 1)`})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	s, _ := open(t, store.Options{Policy: rules})
	if _, err := s.Save(t.Context(), parse(t, `{}`), "a"); err != nil {
		t.Fatal(err)
	}
	for _, fields := range []object.Object{covers(t, "h1"), {"covers": nil, store.BinariesField: nil}} {
		if _, err := s.Mutate(client(t.Context()), "a", func(store.Stored) (store.Mutation, error) {
			return store.Mutation{Fields: fields}, nil
		}); err != nil {
			t.Errorf("%v: %v", fields, err)
		}
	}
	_, err := s.Mutate(client(t.Context()), "a", func(store.Stored) (store.Mutation, error) {
		return store.Mutation{Fields: covers(t, "h1", "h2")}, nil
	})
	kind(t, err, errs.Unauthenticated)
}

func TestEventsListPropertiesWithBinaries(t *testing.T) {
	for holding, want := range map[bool]string{true: `{"covers":"binary"}`, false: ""} {
		s, out := open(t, store.Options{IndexBinaries: holding})
		if _, err := s.Save(t.Context(), covers(t, "h1"), "a"); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Update(t.Context(), parse(t, `{"title":"x"}`), store.UpdateOptions{UUID: "a"}); err != nil {
			t.Fatal(err)
		}
		if err := s.Delete(t.Context(), "a", 0); err != nil {
			t.Fatal(err)
		}
		for _, e := range out.events {
			if string(e.Binaries) != want || object.Field(e.Object, store.BinariesField) != nil {
				t.Errorf("%s of a store that is holding: %v says %q, with the object %s", e.Event, holding, e.Binaries,
					e.Object)
			}
		}
	}
}
