package store_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"belfry/pkg/object"
	"belfry/pkg/store"
	"belfry/pkg/store/policy"
	"belfry/pkg/store/query"
)

// pages lists everything and returns the sizes of the encoded pages.
func pages(t *testing.T, s *store.Store, o store.ListOptions) (uuids []string, sizes []int) {
	t.Helper()
	for {
		page, err := s.List(client(t.Context()), o)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range page.Objects {
			uuids = append(uuids, found.UUID)
		}
		sizes = append(sizes, len(page.Encode("items")))
		if o.Cursor = page.Next; o.Cursor == "" {
			return uuids, sizes
		}
	}
}

func TestAPageOfAListIsBoundedInBytes(t *testing.T) {
	s, _ := open(t, store.Options{
		Indexes: []query.Index{{Name: "year", Fields: []string{"year"}}}, Arrays: []string{"copies"},
		Policy: compile(t, policy.Rules{Get: "!has(object.hidden)"}),
	})
	var want []string
	for i := range 30 {
		uuid := fmt.Sprintf("b%02d", i)
		text, hidden := strings.Repeat("x", 250_000), ""
		if i%7 == 0 {
			text = "short"
		}
		if i%5 == 0 {
			hidden = `,"hidden":true`
		} else {
			want = append(want, uuid)
		}
		save(t, s, uuid, fmt.Sprintf(`{"year":%d,"text":"%s"%s}`, 1900+i, text, hidden))
	}
	// One object that is larger than a page.
	base, err := s.Get(t.Context(), "b23")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.NewWorker(s).CompareAndSet(t.Context(), base,
		object.Object{"copies": []byte(`["` + strings.Repeat("x", 5<<20) + `"]`)}); err != nil {
		t.Fatal(err)
	}
	for name, o := range map[string]store.ListOptions{
		"in the order of uuids": {}, "by an index": {Sort: "year"}, "backwards": {Sort: "-year"},
		"with a filter": {Filter: "year >= 1900"},
	} {
		for _, limit := range []int{0, 1 << 20} {
			o.Limit, o.MaxBytes = store.MaxPage, limit
			if limit == 0 {
				limit = 4 << 20
			}
			got, sizes := pages(t, s, o)
			expected := slices.Clone(want)
			if name == "backwards" {
				slices.Reverse(expected)
			}
			if !slices.Equal(got, expected) {
				t.Errorf("%s, %d bytes: listed %v", name, limit, got)
			}
			large := 0
			for _, size := range sizes {
				if size > limit {
					large++
				}
			}
			if large != 1 || len(sizes) < 3 {
				t.Errorf("%s, %d bytes: the pages have %v bytes, want one above the limit: that of the large object",
					name, limit, sizes)
			}
		}
	}
}
