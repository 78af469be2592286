package mongostore_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"belfry/pkg/store/driver"
	"belfry/test/backing"
)

// TestRangeOfSeveralKeys: in an index with several keys for a record a range
// gives each of its keys in the range, in their order, whatever other keys its
// record has.
func TestRangeOfSeveralKeys(t *testing.T) {
	ix := driver.Index{Name: "place", Parts: 2, Multi: true}
	s, err := open(t, backing.Mongo(t)).Open(t.Context(), driver.Spec{
		Name: "Books", Indexes: []driver.Index{ix}, Keys: func(string, []byte) []driver.Key { return nil },
	})
	must(t, err)
	type entry struct{ first, second, uuid string }
	var entries []entry
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 30 {
		w := driver.Write{UUID: fmt.Sprintf("n%02d", i), Revision: 1, Body: []byte("{}")}
		for range random.IntN(5) {
			e := entry{string("abc"[random.IntN(3)]), string("xyz"[random.IntN(3)]), w.UUID}
			w.Keys = append(w.Keys, driver.Key{Index: ix.Name, Parts: [][]byte{[]byte(e.first), []byte(e.second)}})
			entries = append(entries, e)
		}
		must(t, s.Put(t.Context(), w))
	}
	slices.SortFunc(entries, func(a, b entry) int {
		return cmp.Or(strings.Compare(a.first, b.first), strings.Compare(a.second, b.second), strings.Compare(a.uuid, b.uuid))
	})
	entries = slices.Compact(entries)
	for _, c := range []struct {
		q  driver.Query
		in func(e entry) bool
	}{
		{driver.Query{}, func(entry) bool { return true }},
		{driver.Query{From: []byte("b")}, func(e entry) bool { return e.first >= "b" }},
		{driver.Query{From: []byte("b"), To: []byte("b")}, func(e entry) bool { return e.first == "b" }},
		{driver.Query{Equal: [][]byte{[]byte("b")}}, func(e entry) bool { return e.first == "b" }},
		{driver.Query{Equal: [][]byte{[]byte("c")}, To: []byte("y")}, func(e entry) bool { return e.first == "c" && e.second <= "y" }},
		{driver.Query{Equal: [][]byte{[]byte("a"), []byte("y")}}, func(e entry) bool { return e.first == "a" && e.second == "y" }},
	} {
		var want []string
		for _, e := range entries {
			if c.in(e) {
				want = append(want, e.uuid)
			}
		}
		for _, limit := range []int{1, 3, 100} {
			for range 2 {
				c.q.Index, c.q.Limit = ix.Name, limit
				if got := pages(t, s, c.q); !slices.Equal(got, want) {
					t.Errorf("%+v found %q, want %q", c.q, got, want)
				}
				c.q.Descending = !c.q.Descending
				slices.Reverse(want)
			}
		}
	}
}

// pages are the uuids that a query finds in all its pages.
func pages(t *testing.T, s driver.Store, q driver.Query) (uuids []string) {
	t.Helper()
	for {
		page, err := s.Query(t.Context(), q)
		must(t, err)
		for _, r := range page.Records {
			uuids = append(uuids, r.UUID)
		}
		if page.Next == nil {
			return uuids
		}
		q.After = page.Next
	}
}

// TestMadeUpPlaces: a place that no page gave out does no harm.
func TestMadeUpPlaces(t *testing.T) {
	byName := driver.Index{Name: "name", Parts: 2}
	s, err := open(t, backing.Mongo(t)).Open(t.Context(), driver.Spec{
		Name: "Books", Indexes: []driver.Index{byTag, byName}, Keys: func(string, []byte) []driver.Key { return nil },
	})
	must(t, err)
	must(t, s.Put(t.Context(), write("a", 0, 1, "one")))
	for _, after := range []string{"", "\x00", " ", "  ", "\xff\xfe", "a \xc3", "$gt", strings.Repeat("\xff", 6000), "99999999999999999999999 x"} {
		for _, descending := range []bool{false, true} {
			for _, q := range []driver.Query{
				{Index: "tag"}, {Index: "tag", Equal: [][]byte{[]byte("one")}}, {Index: "name"}, {Index: "name", Equal: [][]byte{nil}},
			} {
				q.After, q.Descending, q.Limit = []byte(after), descending, 10
				_, err := s.Query(t.Context(), q)
				must(t, err)
			}
		}
		_, err := s.Scan(t.Context(), []byte(after), 10)
		must(t, err)
		_, _, err = s.Pending(t.Context(), []byte(after), 10)
		must(t, err)
	}
}
