package store_test

import (
	"testing"

	"belfry/pkg/object"
	"belfry/pkg/store"
	"belfry/pkg/store/policy"
	"belfry/pkg/store/query"
)

func computed(t *testing.T, expressions map[string]string, arrays ...string) *policy.Computed {
	t.Helper()
	c, problems := policy.CompileComputed(expressions, policy.Known{Arrays: arrays})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return c
}

// Whoever writes, computed fields are what the rest of the object makes them, in its record, its indexes and its event.
func TestComputedFieldsFollowEachWrite(t *testing.T) {
	s, out := open(t, store.Options{
		Arrays:   []string{"books"},
		Computed: computed(t, map[string]string{"name": "first + ' ' + last", "count": "size(books)"}, "books"),
		Indexes:  []query.Index{query.NewIndex([]string{"count"})},
	})
	ctx := client(t.Context())
	check := func(name, count string) {
		t.Helper()
		o, err := s.Get(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		is(t, o.Body, map[string]string{"name": name, "count": count})
		if last := out.last(); string(last.Object) != "" {
			is(t, last.Object, map[string]string{"name": name, "count": count})
		}
		page, err := s.List(t.Context(), store.ListOptions{Filter: "count == " + count, Limit: 10})
		if err != nil || len(page.Objects) != 1 {
			t.Errorf("listed %d by count, %v", len(page.Objects), err)
		}
	}
	if _, err := s.Save(ctx, parse(t, `{"first":"Ada","last":"Byron","name":"forged","count":7}`), "a"); err != nil {
		t.Fatal(err)
	}
	check(`"Ada Byron"`, "0")

	if _, err := s.Update(ctx, parse(t, `{"last":"Lovelace","count":7}`), store.UpdateOptions{UUID: "a"}); err != nil {
		t.Fatal(err)
	}
	check(`"Ada Lovelace"`, "0")
	if got, want := string(out.last().Previous["name"]), `"Ada Byron"`; got != want {
		t.Errorf("previous name %s, want %s", got, want)
	}

	o, err := s.Get(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.NewWorker(s).CompareAndSet(t.Context(), o,
		object.Object{"books": []byte(`[{"uuid":"x"},{"uuid":"y"}]`), "count": []byte("9")}); err != nil {
		t.Fatal(err)
	}
	check(`"Ada Lovelace"`, "2")

	patch := parse(t, `{"first":null,"count":null}`)
	if _, err := s.Update(ctx, patch, store.UpdateOptions{UUID: "a", Patch: true}); err != nil {
		t.Fatal(err)
	}
	check("", "2")

	_, err = s.Mutate(t.Context(), "a", func(store.Stored) (store.Mutation, error) {
		return store.Mutation{Fields: object.Object{"first": []byte(`"A."`)}}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	check(`"A. Lovelace"`, "2")
	if !s.Rules().ServerOwned("count") {
		t.Error("clients may set it")
	}
}

// With another expression an object is written again once, which its event reports.
func TestRecompute(t *testing.T) {
	before, out := open(t, store.Options{Computed: computed(t, map[string]string{"n": "a + 1"})})
	o := save(t, before, "x", `{"a":1}`)
	s := before.WithOptions(func(o *store.Options) {
		o.Computed = computed(t, map[string]string{"n": "a + 2", "m": "a"})
	})
	if wrong, err := s.Miscomputed(o); err != nil || len(wrong) != 2 {
		t.Fatalf("%v, %v", wrong, err)
	}
	for _, want := range []bool{true, false} {
		o, err := s.Get(t.Context(), "x")
		if err != nil {
			t.Fatal(err)
		}
		if wrote, err := store.NewWorker(s).Recompute(t.Context(), o); wrote != want || err != nil {
			t.Errorf("wrote %v, %v, want %v", wrote, err, want)
		}
	}
	if len(out.events) != 2 {
		t.Errorf("%d events", len(out.events))
	}
	is(t, out.last().Object, map[string]string{"n": "3", "m": "1"})
}
