package mongostore_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"belfry/pkg/store/driver"
	"belfry/test/backing"
)

// TestEachOfSeveralKeysFindsItsRecords pages through the records of each key in both directions,
// whatever other keys the records have.
func TestEachOfSeveralKeysFindsItsRecords(t *testing.T) {
	ix := driver.Index{Name: "place", Parts: 2, Multi: true}
	s, err := open(t, backing.Mongo(t)).Open(t.Context(), driver.Spec{
		Name: "Books", Indexes: []driver.Index{ix}, Keys: func([]byte) []driver.Key { return nil },
	})
	must(t, err)
	type place struct{ first, second string }
	uuids := map[place][]string{}
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 30 {
		w := driver.Write{UUID: fmt.Sprintf("n%02d", i), Revision: 1, Body: []byte("{}")}
		for range random.IntN(5) {
			p := place{string("abc"[random.IntN(3)]), string("xyz"[random.IntN(3)])}
			w.Keys = append(w.Keys, driver.Key{Index: ix.Name, Parts: [][]byte{[]byte(p.first), []byte(p.second)}})
			uuids[p] = append(uuids[p], w.UUID)
		}
		must(t, s.Put(t.Context(), w))
	}
	for p, want := range uuids {
		want = slices.Compact(want)
		for _, limit := range []int{1, 3, 100} {
			for range 2 {
				q := driver.Query{Index: ix.Name, Equal: [][]byte{[]byte(p.first), []byte(p.second)}, Limit: limit,
					Descending: !slices.IsSorted(want)}
				var got []string
				for r, err := range driver.Matches(t.Context(), s, q) {
					must(t, err)
					got = append(got, r.UUID)
				}
				if !slices.Equal(got, want) {
					t.Errorf("%+v found %q, want %q", q, got, want)
				}
				slices.Reverse(want)
			}
		}
	}
}

// TestForgedCursorsAreHarmless: a place that no page gave out does no harm.
func TestForgedCursorsAreHarmless(t *testing.T) {
	byName := driver.Index{Name: "name", Parts: 2}
	s, err := open(t, backing.Mongo(t)).Open(t.Context(), driver.Spec{
		Name: "Books", Indexes: []driver.Index{byTag, byName}, Keys: func([]byte) []driver.Key { return nil },
	})
	must(t, err)
	must(t, s.Put(t.Context(), write("a", 0, 1, "one")))
	for _, after := range []string{"", "\x00", " ", "  ", "\xff\xfe", "a \xc3", "$gt", strings.Repeat("\xff", 6000),
		"99999999999999999999999 x"} {
		for _, descending := range []bool{false, true} {
			for _, q := range []driver.Query{
				{Index: "tag", Equal: [][]byte{[]byte("one")}}, {Index: "name"}, {Index: "name", Equal: [][]byte{nil}},
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
