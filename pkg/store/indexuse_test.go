package store_test

import (
	"fmt"
	"testing"

	"belfry/pkg/store"
	"belfry/pkg/store/filestore"
	"belfry/pkg/store/query"
)

// The use of an index is counted by the pages of lists that read it.
func TestUsesOfIndexesAreCounted(t *testing.T) {
	t.Parallel()
	backend, err := filestore.Open(t.TempDir(), filestore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = backend.Close() })
	s, err := store.Open(t.Context(), backend, store.Options{Name: "Books",
		Indexes: []query.Index{query.NewIndex([]string{"year"}), query.NewIndex([]string{"author", "-year"})},
		Maps:    []store.Mapping{{Source: "Books", Target: "Authors", Key: "author"}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, filter := range []string{"year == 1", "year in [1, 2, 3]", `author == "a"`, ""} {
		if _, err := s.List(t.Context(), store.ListOptions{Filter: filter}); err != nil {
			t.Fatal(filter, err)
		}
	}
	if _, err := s.List(t.Context(), store.ListOptions{Filter: "none == 1"}); err == nil {
		t.Error("a list without an index")
	}
	uses, err := store.IndexUses(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	got := ""
	for _, u := range uses {
		got += fmt.Sprintf("%v %s %v %d; ", u.Fields, u.Key, u.Building, u.Lists)
	}
	if want := "[author -year]  false 1; [] author false 0; [year]  false 2; "; got != want {
		t.Error(got)
	}
}
