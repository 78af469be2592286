package verify_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"belfry/pkg/mapping"
	"belfry/pkg/store"
	"belfry/pkg/store/object"
	"belfry/pkg/verify"
	"belfry/test/model"
)

// shop is two authors, their books, and arrays that are right at first.
type shop struct {
	*testing.T
	set *store.Set
}

func newShop(t *testing.T, limit int, books ...string) *shop {
	set, err := model.OpenSet(t.Context(), model.NewMemory(), []store.Mapping{{
		Source: "Books", Target: "Authors", Key: "author", Array: "books", Fields: []string{"title"}, Cascade: true, Limit: limit,
	}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	s := &shop{t, set}
	s.save("Authors", "a", `{}`)
	s.save("Authors", "b", `{}`)
	for _, book := range books {
		s.save("Books", book, `{"author":"a","title":"t"}`)
	}
	s.keep("a", books...)
	return s
}

func (s *shop) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

func (s *shop) save(name, uuid, body string) {
	s.Helper()
	o, err := object.Parse([]byte(body))
	s.must(err)
	_, err = s.set.Store(name).Save(s.Context(), o, uuid)
	s.must(err)
}

func (s *shop) keep(target string, books ...string) {
	s.Helper()
	s.must(mapping.NewReconciler(s.set, mapping.Options{}).Reconcile(s.Context(), &s.set.Mappings()[0], target, books))
}

// array writes an author's array as it should not be.
func (s *shop) array(author, value string) {
	s.Helper()
	a, err := s.set.Store("Authors").Get(s.Context(), author)
	s.must(err)
	_, err = store.NewWorker(s.set.Store("Authors")).CompareAndSet(s.Context(), a, object.Object{"books": []byte(value)})
	s.must(err)
}

func (s *shop) run(o verify.Options) *verify.Report {
	s.Helper()
	r, err := verify.Run(s.Context(), s.set, o)
	s.must(err)
	return r
}

// finds asserts the differences, and that a repair leaves none and is lasting.
func (s *shop) finds(want ...string) {
	s.Helper()
	var got []string
	for _, d := range s.run(verify.Options{}).Differences {
		got = append(got, fmt.Sprintf("%s %s in %s", d.Kind, d.UUID, d.Holder))
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		s.Errorf("found %q, want %q", got, want)
	}
	if r := s.run(verify.Options{Repair: true}); !r.Clean() || r.Repaired == 0 {
		s.Errorf("repaired %d, and left %+v", r.Repaired, r.Differences)
	}
	if r := s.run(verify.Options{}); !r.Clean() {
		s.Errorf("after the repair: %+v", r.Differences)
	}
}

func TestWhatIsRightIsClean(t *testing.T) {
	s := newShop(t, 10, "x", "y")
	s.save("Books", "dangling", `{"author":"nobody"}`)
	r := s.run(verify.Options{})
	if !r.Clean() || r.Mappings != 1 || r.Objects != 3 || r.Targets != 2 || r.Entries != 2 || r.Pending == 0 {
		t.Errorf("%+v", r)
	}
}

func TestDifferencesAreFoundAndRepaired(t *testing.T) {
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
		{"extra instead of missing", `[` + x + `,{"uuid":"z","title":"t"}]`, []string{"extra z in a", "missing y in a"}},
		{"duplicate", `[` + x + `,` + y + `,` + x + `]`, []string{"duplicate x in a"}},
		{"duplicate instead of missing", `[` + x + `,` + x + `]`, []string{"duplicate x in a", "missing y in a"}},
		{"an entry without uuid", `[` + x + `,` + y + `,{"title":"t"}]`, []string{"malformed  in a"}},
		{"no array", `{"x":1}`, []string{"malformed  in a", "missing x in a", "missing y in a"}},
		{"null", `null`, []string{"malformed  in a", "missing x in a", "missing y in a"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newShop(t, 10, "x", "y")
			s.array("a", test.array)
			s.finds(test.want...)
		})
	}
}

func TestAnEntryInAnotherTargetsArrayIsExtra(t *testing.T) {
	s := newShop(t, 10, "x")
	s.array("b", `[{"uuid":"x","title":"t"}]`)
	s.finds("extra x in b")
}

func TestAMappingOverExistingObjectsIsBroughtUpToDate(t *testing.T) {
	s := newShop(t, 10)
	for i := range 7 {
		s.save("Books", fmt.Sprint("x", i), `{"author":["a","b"],"title":"t"}`)
	}
	if r := s.run(verify.Options{}); len(r.Differences) != 14 {
		t.Fatalf("%d differences, want 14", len(r.Differences))
	}
	if r := s.run(verify.Options{Repair: true}); !r.Clean() || r.Repaired != 2 {
		t.Fatalf("%+v", r)
	}
}

func TestWhatACascadeLeftIsFound(t *testing.T) {
	s := newShop(t, 10, "x")
	s.must(s.set.Store("Authors").Delete(t.Context(), "a", 0))
	s.finds("undeleted x in a")
	if found, err := s.set.Store("Books").Exists(t.Context(), "x"); err != nil || found {
		t.Errorf("x is there: %v, %v", found, err)
	}
}

func TestAFullArrayIsToldAndClean(t *testing.T) {
	s := newShop(t, 2, "w", "x", "y", "z")
	r := s.run(verify.Options{})
	want := verify.Overfull{Target: "Authors", Holder: "a", Array: "books", Limit: 2, Objects: 4}
	if !r.Clean() || len(r.Overfull) != 1 || r.Overfull[0] != want {
		t.Errorf("%+v", r)
	}
}

func TestAFullArrayThatHasRoomIsFound(t *testing.T) {
	s := newShop(t, 2, "w", "x", "y")
	s.array("a", `[{"uuid":"x","title":"t"}]`)
	s.finds("missing w in a", "missing y in a")
}

func TestALoweredLimitIsKept(t *testing.T) {
	s := newShop(t, 3, "x", "y", "z")
	s.set.Mappings()[0].Limit = 1
	s.finds("extra  in a")
	a, err := s.set.Store("Authors").Get(t.Context(), "a")
	s.must(err)
	if got := string(object.Field(a.Body, "books")); got != `[{"uuid":"x","title":"t"}]` {
		t.Errorf("the array is %s, want the one mapped first", got)
	}
}

func TestARaisedLimitIsUsed(t *testing.T) {
	s := newShop(t, 1, "x", "y", "z")
	s.set.Mappings()[0].Limit = 3
	s.finds("missing y in a", "missing z in a")
}

// While workers catch up a difference does not count.
func TestPatienceWaitsForWorkers(t *testing.T) {
	s := newShop(t, 10, "x")
	s.save("Books", "y", `{"author":"a","title":"t"}`)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan *verify.Report)
	go func() {
		r, err := verify.Run(ctx, s.set, verify.Options{Patience: time.Hour})
		if err != nil {
			t.Error(err)
		}
		done <- r
	}()
	s.keep("a", "y")
	if r := <-done; r == nil || !r.Clean() {
		t.Errorf("%+v", r)
	}
}

func TestAReportListsSoManyDifferencesAndCountsTheRest(t *testing.T) {
	s := newShop(t, verify.MaxDifferences*2)
	for i := range verify.MaxDifferences + 5 {
		s.save("Books", fmt.Sprint("x", i), `{"author":"b"}`)
	}
	if r := s.run(verify.Options{}); len(r.Differences) != verify.MaxDifferences || r.More != 5 || r.Clean() {
		t.Errorf("%d differences and %d more", len(r.Differences), r.More)
	}
}
