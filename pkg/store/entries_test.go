package store_test

import (
	"fmt"
	"strings"
	"testing"

	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/object"
	"belfry/pkg/store"
	"belfry/pkg/store/driver"
	"belfry/pkg/store/policy"
	"belfry/pkg/store/query"
)

// shelfOf saves an object with an array of so many entries of 130 bytes.
func shelfOf(t *testing.T, s *store.Store, entries int) store.Stored {
	t.Helper()
	base := save(t, s, "a", `{"name":"N"}`)
	var all []string
	for i := range entries {
		all = append(all, fmt.Sprintf(`{"uuid":"e%05d","title":%q}`, i, strings.Repeat("x", 100)))
	}
	o, err := store.NewWorker(s).CompareAndSet(t.Context(), base,
		object.Object{"books": []byte("[" + strings.Join(all, ",") + "]")})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// Entries are read alone where nothing else of the object depends on them, and the array is large.
func TestEntriesAreReadAloneWhereNothingDependsOnThem(t *testing.T) {
	compile := func(expression string) *policy.Computed {
		computed, problems := policy.CompileComputed(map[string]string{"made": expression},
			policy.Known{Arrays: []string{"books"}})
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		return computed
	}
	for name, c := range map[string]struct {
		options store.Options
		entries int
		alone   bool
	}{
		"a large array":                  {store.Options{Indexes: []query.Index{query.NewIndex([]string{"name"})}}, 600, true},
		"a small array":                  {store.Options{}, 100, false},
		"a computed property of it":      {store.Options{Computed: compile("size(books)")}, 600, false},
		"a computed property of another": {store.Options{Computed: compile("name + '!'")}, 600, true},
		"an index of its elements":       {store.Options{Indexes: []query.Index{query.NewIndex([]string{"books[]"})}}, 600, false},
		"a descending index of it":       {store.Options{Indexes: []query.Index{query.NewIndex([]string{"-books"})}}, 600, false},
		"an index of the array":          {store.Options{Indexes: []query.Index{query.NewIndex([]string{"books.title"})}}, 600, false},
		"a unique array":                 {store.Options{Unique: [][]string{{"name", "books"}}}, 600, false},
		"an array that is copied":        {store.Options{CopiedFrom: []string{"books"}}, 600, false},
		"arrays that are to be whole":    {store.Options{WholeArrays: true}, 600, false},
		"arrays that others can't read":  {store.Options{MoreChunks: func() bool { return false }}, 600, false},
	} {
		t.Run(name, func(t *testing.T) {
			c.options.Arrays = []string{"books"}
			s, _ := open(t, c.options)
			shelfOf(t, s, c.entries)
			part, err := store.NewWorker(s).GetEntries(t.Context(), "a", "books", []string{"e00007", "absent"})
			if err != nil {
				t.Fatal(err)
			}
			if alone := part.Entries != nil; alone != c.alone {
				t.Fatalf("read alone: %v, want %v", alone, c.alone)
			}
			if c.alone && (len(part.Body) > 300 || len(part.Entries.Values) != 1 || part.Entries.Count != 600) ||
				!c.alone && len(part.Body) < 100*c.entries {
				t.Errorf("the object has %d bytes, with the entries %+v", len(part.Body), part.Entries)
			}
			_, err = store.NewWorker(s).GetEntries(t.Context(), "missing", "books", nil)
			kind(t, err, errs.NotFound)
		})
	}
}

func TestAChangeOfEntriesHasAnEventWithThem(t *testing.T) {
	s, out := open(t, store.Options{Arrays: []string{"books"}})
	shelfOf(t, s, 3000)
	w := store.NewWorker(s)
	part, err := w.GetEntries(t.Context(), "a", "books", nil)
	if err != nil {
		t.Fatal(err)
	}
	set := []byte(`{"uuid":"e00007","title":"T"}`)
	changes := []driver.Entry{{UUID: "e00007", Value: set}, {UUID: "e00008"}}
	mark := object.Object{"_overflow": []byte(`{"books":[]}`)}
	ctx := store.WithCall(t.Context(), store.Call{Origin: event.OriginMapping})
	if err := w.ChangeEntries(ctx, part, "books", changes, mark); err != nil {
		t.Fatal(err)
	}
	e := out.last()
	if got := e.Arrays["books"]; len(got.Set) != 1 || string(got.Set[0]) != string(set) ||
		strings.Join(got.Removed, " ") != "e00008" || !e.ObjectOmitted || !e.PreviousOmitted || e.Object != nil ||
		e.Previous != nil || e.Origin != event.OriginMapping {
		t.Errorf("got the event %+v", e)
	}
	now, err := s.Get(t.Context(), "a")
	if err != nil || now.Revision != e.Revision || !strings.Contains(string(now.Body), string(set)) ||
		strings.Contains(string(now.Body), "e00008") || !strings.Contains(string(now.Body), `"_overflow":{"books":[]}`) {
		t.Errorf("got %.200s, %v", now.Body, err)
	}
	kind(t, w.ChangeEntries(ctx, part, "books", changes, nil), errs.Mismatch)

	// Changes that don't fit into an event are left out of it.
	if part, err = w.GetEntries(t.Context(), "a", "books", nil); err != nil {
		t.Fatal(err)
	}
	changes = nil
	for i := range 2500 {
		changes = append(changes, driver.Entry{UUID: fmt.Sprintf("e%05d", i+100),
			Value: fmt.Appendf(nil, `{"uuid":"e%05d","title":%q}`, i+100, strings.Repeat("y", 100))})
	}
	if err := w.ChangeEntries(ctx, part, "books", changes, nil); err != nil {
		t.Fatal(err)
	}
	if e := out.last(); e.Arrays != nil || !e.ObjectOmitted || !e.PreviousOmitted {
		t.Errorf("got the event %+v", e)
	}
	whole := store.Part{Stored: now}
	kind(t, w.ChangeEntries(ctx, whole, "books", changes, nil), errs.Internal)
}
