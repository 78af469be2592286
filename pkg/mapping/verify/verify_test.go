package verify_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"belfry/pkg/mapping"
	"belfry/pkg/mapping/verify"
	"belfry/pkg/object"
	"belfry/pkg/store"
	"belfry/test/model"
)

// fixture is two authors, their books, and arrays that match them.
type fixture struct {
	*testing.T
	set *store.Set
}

func newFixture(t *testing.T, limit int, books ...string) *fixture {
	f := openFixture(t, store.Mapping{Limit: limit})
	for _, book := range books {
		f.save("Books", book, `{"author":"a","title":"t"}`)
	}
	f.reconcile("a", books...)
	return f
}

// ownedFixture has a mapping that asks for the same owner, and no book.
func ownedFixture(t *testing.T, targetOwner string) *fixture {
	return openFixture(t, store.Mapping{Limit: 10, SourceOwner: "user", TargetOwner: targetOwner})
}

// openFixture has two authors, and the mapping of books into them with the given settings.
func openFixture(t *testing.T, m store.Mapping) *fixture {
	m.Source, m.Target, m.Key, m.Array, m.Fields, m.Cascade = "Books", "Authors", "author", "books", []string{"title"},
		true
	set, err := model.OpenSet(t.Context(), model.NewMemory(), []store.Mapping{m}, nil)
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{t, set}
	f.save("Authors", "a", `{}`)
	f.save("Authors", "b", `{}`)
	return f
}

func (f *fixture) must(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

func (f *fixture) save(name, uuid, body string) {
	f.Helper()
	o, err := object.Parse([]byte(body))
	f.must(err)
	_, err = f.set.Store(name).Save(f.Context(), o, uuid)
	f.must(err)
}

func (f *fixture) reconcile(target string, books ...string) {
	f.Helper()
	f.must(mapping.NewReconciler(f.set, mapping.Options{}).Reconcile(f.Context(), &f.set.Mappings()[0], target, books))
}

// array overwrites an author's array.
func (f *fixture) array(author, value string) {
	f.Helper()
	a, err := f.set.Store("Authors").Get(f.Context(), author)
	f.must(err)
	_, err = store.NewWorker(f.set.Store("Authors")).CompareAndSet(f.Context(), a,
		object.Object{"books": []byte(value)})
	f.must(err)
}

func (f *fixture) run(o verify.Options) *verify.Report {
	f.Helper()
	r, err := verify.Run(f.Context(), f.set, o)
	f.must(err)
	return r
}

// finds asserts the differences, and that a repair corrects them permanently.
func (f *fixture) finds(want ...string) {
	f.Helper()
	var got []string
	for _, d := range f.run(verify.Options{}).Differences {
		got = append(got, fmt.Sprintf("%s %s in %s", d.Kind, d.UUID, d.Holder))
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		f.Errorf("found %q, want %q", got, want)
	}
	if r := f.run(verify.Options{Repair: true}); !r.Clean() || r.Repaired == 0 {
		f.Errorf("repaired %d, and left %+v", r.Repaired, r.Differences)
	}
	if r := f.run(verify.Options{}); !r.Clean() {
		f.Errorf("after the repair: %+v", r.Differences)
	}
}

func TestMatchingArraysAreClean(t *testing.T) {
	f := newFixture(t, 10, "x", "y")
	f.save("Books", "dangling", `{"author":"nobody"}`)
	r := f.run(verify.Options{})
	if !r.Clean() || r.Mappings != 1 || r.Objects != 3 || r.Targets != 2 || r.Entries != 2 || r.Pending == 0 {
		t.Errorf("%+v", r)
	}
}

func TestDifferencesAreReportedAndRepaired(t *testing.T) {
	const x, y = `{"uuid":"x","title":"t"}`, `{"uuid":"y","title":"t"}`
	for _, test := range []struct {
		name, array string
		want        []string
	}{
		{"missing", `[` + x + `]`, []string{"missing y in a"}},
		{"no array at all", `[]`, []string{"missing x in a", "missing y in a"}},
		{"wrong", `[` + x + `,{"uuid":"y","title":"old"}]`, []string{"wrong y in a"}},
		{"a field too many", `[` + x + `,{"uuid":"y","title":"t","more":1}]`, []string{"wrong y in a"}},
		{"extra", `[` + x + `,` + y + `,{"uuid":"z","title":"t"}]`, []string{"extra z in a"}},
		{"extra instead of missing", `[` + x + `,{"uuid":"z","title":"t"}]`,
			[]string{"extra z in a", "missing y in a"}},
		{"duplicate", `[` + x + `,` + y + `,` + x + `]`, []string{"duplicate x in a"}},
		{"duplicate instead of missing", `[` + x + `,` + x + `]`, []string{"duplicate x in a", "missing y in a"}},
		{"an entry without uuid", `[` + x + `,` + y + `,{"title":"t"}]`, []string{"malformed  in a"}},
		{"no array", `{"x":1}`, []string{"malformed  in a", "missing x in a", "missing y in a"}},
		{"null", `null`, []string{"malformed  in a", "missing x in a", "missing y in a"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := newFixture(t, 10, "x", "y")
			f.array("a", test.array)
			f.finds(test.want...)
		})
	}
}

func TestEntryInAnotherTargetsArrayIsExtra(t *testing.T) {
	f := newFixture(t, 10, "x")
	f.array("b", `[{"uuid":"x","title":"t"}]`)
	f.finds("extra x in b")
}

func TestRepairFillsAMappingAddedOverExistingObjects(t *testing.T) {
	f := newFixture(t, 10)
	for i := range 7 {
		f.save("Books", fmt.Sprint("x", i), `{"author":["a","b"],"title":"t"}`)
	}
	if r := f.run(verify.Options{}); len(r.Differences) != 14 {
		t.Fatalf("%d differences, want 14", len(r.Differences))
	}
	if r := f.run(verify.Options{Repair: true}); !r.Clean() || r.Repaired != 2 {
		t.Fatalf("%+v", r)
	}
}

func TestObjectLeftByACascadeIsReported(t *testing.T) {
	f := newFixture(t, 10, "x")
	f.must(f.set.Store("Authors").Delete(t.Context(), "a", 0))
	f.finds("undeleted x in a")
	if found, err := f.set.Store("Books").Exists(t.Context(), "x"); err != nil || found {
		t.Errorf("x exists: %v, %v", found, err)
	}
}

func TestFullArrayIsReportedAndClean(t *testing.T) {
	f := newFixture(t, 2, "w", "x", "y", "z")
	r := f.run(verify.Options{})
	want := verify.Full{Target: "Authors", Holder: "a", Array: "books", Limit: 2, Entries: 2, Bytes: 50, Objects: 4}
	if !r.Clean() || len(r.Full) != 1 || r.Full[0] != want {
		t.Errorf("%+v", r)
	}
}

func TestArrayBelowItsLimitLacksEntries(t *testing.T) {
	f := newFixture(t, 2, "w", "x", "y")
	f.array("a", `[{"uuid":"x","title":"t"}]`)
	f.finds("missing w in a", "missing y in a")
}

func TestRepairTrimsToALoweredLimit(t *testing.T) {
	f := newFixture(t, 3, "x", "y", "z")
	f.set.Mappings()[0].Limit = 1
	f.finds("extra  in a")
	a, err := f.set.Store("Authors").Get(t.Context(), "a")
	f.must(err)
	if got := string(object.Field(a.Body, "books")); got != `[{"uuid":"x","title":"t"}]` {
		t.Errorf("the array is %s, want the one added first", got)
	}
}

func TestArraysAreBoundedInBytes(t *testing.T) {
	f := newFixture(t, 10, "w", "x", "y", "z") // 25 bytes each
	m := &f.set.Mappings()[0]
	m.MaxBytes, m.MaxEntry = 80, 30
	f.finds("extra  in a")
	r := f.run(verify.Options{})
	want := verify.Full{Target: "Authors", Holder: "a", Array: "books", Limit: 10, Entries: 3, Bytes: 75, Objects: 4}
	if !r.Clean() || len(r.Full) != 1 || r.Full[0] != want {
		t.Errorf("%+v", r)
	}
	m.MaxBytes = 120
	f.finds("missing z in a")
}

// An object whose entry is too large has none, and a cascade deletes it all the same.
func TestEntriesAreBoundedInBytes(t *testing.T) {
	f := newFixture(t, 10, "w", "x")
	m := &f.set.Mappings()[0]
	m.MaxBytes, m.MaxEntry = 400, 20
	f.finds("extra w in a", "extra x in a")
	r := f.run(verify.Options{})
	want := verify.TooLarge{Source: "Books", UUID: "w", Target: "Authors", Holder: "a", Array: "books", Limit: 20}
	if !r.Clean() || len(r.TooLarge) != 2 || r.TooLarge[0] != want {
		t.Errorf("%+v", r)
	}
	f.must(f.set.Store("Authors").Delete(t.Context(), "a", 0))
	f.finds("undeleted w in a", "undeleted x in a")
}

func TestRepairRefillsToARaisedLimit(t *testing.T) {
	f := newFixture(t, 1, "x", "y", "z")
	f.set.Mappings()[0].Limit = 3
	f.finds("missing y in a", "missing z in a")
}

// A difference that workers correct in the meantime does not count.
func TestDifferenceThatWorkersCorrectIsNotReported(t *testing.T) {
	f := newFixture(t, 10, "x")
	f.save("Books", "y", `{"author":"a","title":"t"}`)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan *verify.Report)
	go func() {
		r, err := verify.Run(ctx, f.set, verify.Options{RecheckFor: time.Hour})
		if err != nil {
			t.Error(err)
		}
		done <- r
	}()
	f.reconcile("a", "y")
	if r := <-done; r == nil || !r.Clean() {
		t.Errorf("%+v", r)
	}
}

func TestReportIsBoundedAndCountsTheRest(t *testing.T) {
	f := newFixture(t, verify.MaxDifferences*2)
	for i := range verify.MaxDifferences + 5 {
		f.save("Books", fmt.Sprint("x", i), `{"author":"b"}`)
	}
	if r := f.run(verify.Options{}); len(r.Differences) != verify.MaxDifferences || r.More != 5 || r.Clean() {
		t.Errorf("%d differences and %d more", len(r.Differences), r.More)
	}
}

// Objects whose keys have values that name nothing are counted, which is no difference.
func TestKeysThatNameNothingAreCounted(t *testing.T) {
	f := newFixture(t, 10, "x")
	f.save("Authors", "7", `{}`)
	for uuid, key := range map[string]string{
		"number": `7`, "numbers": `[7,"a"]`, "none": `null`, "empty": `[]`,
		"fraction": `7.0`, "negative": `-7`, "some": `["a",true]`, "text": `"a b"`, "object": `{"uuid":"a"}`,
	} {
		f.save("Books", uuid, `{"author":`+key+`}`)
	}
	f.save("Books", "without", `{}`)
	f.reconcile("a", "x", "numbers", "some")
	f.reconcile("7", "number", "numbers")
	r := f.run(verify.Options{})
	if !r.Clean() || len(r.Unnamed) != 1 {
		t.Fatalf("%+v", r)
	}
	want := verify.Unnamed{Source: "Books", Key: "author", Target: "Authors", Objects: 5, UUID: "fraction",
		Detail: "must be a string, or a whole number without sign, fraction and exponent, is 7.0"}
	if r.Unnamed[0] != want {
		t.Errorf("%+v", r.Unnamed[0])
	}
	r = f.run(verify.Options{TargetsAtOnce: 1})
	if len(r.Unnamed) != 1 || r.Unnamed[0] != want {
		t.Errorf("in several spans: %+v", r.Unnamed)
	}
	if r := newFixture(t, 10, "x").run(verify.Options{}); r.Unnamed != nil {
		t.Errorf("%+v", r.Unnamed)
	}
}
