package verify_test

import (
	"testing"

	"belfry/pkg/mapping/verify"
	"belfry/pkg/object"
	"belfry/pkg/store"
	"belfry/pkg/store/policy"
	"belfry/test/model"
)

// A new expression makes stored values stale. A repair corrects them, and what is mapped from them.
func TestComputedFieldsAreComparedAndRepaired(t *testing.T) {
	mappings := []store.Mapping{
		{Source: "Authors", Target: "Publishers", Key: "publisher", Array: "authors", Fields: []string{"count"},
			Limit: 10, FollowsWorkers: true},
		{Source: "Books", Target: "Authors", Key: "author", Array: "books", Limit: 10},
	}
	set, err := model.OpenSet(t.Context(), model.NewMemory(), mappings, nil)
	f := &fixture{t, set}
	f.must(err)
	f.save("Publishers", "p", `{}`)
	f.save("Authors", "a", `{"publisher":"p"}`)
	f.save("Authors", "b", `{}`)
	f.save("Books", "x", `{"author":"a"}`)

	computed, problems := policy.CompileComputed(map[string]string{"count": "size(books)"},
		policy.Known{Arrays: []string{"books"}})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	counting := set.Store("Authors").WithOptions(func(o *store.Options) { o.Computed = computed })
	f.set = store.NewSet([]*store.Store{set.Store("Publishers"), counting, set.Store("Books")}, mappings)

	report := f.run(verify.Options{})
	stale := 0
	for _, d := range report.Differences {
		if d.Kind == verify.Stale {
			stale++
		}
	}
	if stale != 2 || report.Computed != 2 {
		t.Errorf("%d stale of %d, want 2 of 2: %+v", stale, report.Computed, report.Differences)
	}
	if report = f.run(verify.Options{Repair: true, Alone: true}); !report.Clean() {
		t.Errorf("left: %+v", report.Differences)
	}
	if report = f.run(verify.Options{}); !report.Clean() {
		t.Errorf("left: %+v", report.Differences)
	}
	p, err := f.set.Store("Publishers").Get(t.Context(), "p")
	f.must(err)
	if got, want := string(object.Field(p.Body, "authors")), `[{"uuid":"a","count":1}]`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	b, err := f.set.Store("Authors").Get(t.Context(), "b")
	f.must(err)
	if got := string(object.Field(b.Body, "count")); got != "0" {
		t.Errorf("got %s, want 0", got)
	}
}
