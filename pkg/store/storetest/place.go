package storetest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"belfry/pkg/store/driver"
)

// pagesFromKeys: a query continues after a key and a UUID that a record has, and after those that none has, in both
// directions.
func pagesFromKeys(f *fixture) {
	s := f.open("Books", byPlace, byTag)
	var all []entry
	for i := range 12 {
		e := entry{fmt.Sprint("p", i/6), fmt.Sprint("q", i%6/2), fmt.Sprintf("n%03d", i*10)}
		s.put(e.uuid, 0, uint64(i+1), keyed("place", e.first, e.second).and("tag", "x").and("tag", "y"))
		all = append(all, e)
	}
	s.wantMatches(driver.Query{Index: "place"}, uuidsOf(all))
	s.wantMatches(driver.Query{Index: "tag", Equal: parts("x")}, uuidsOf(all))
	compare := func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.first, b.first), cmp.Compare(a.second, b.second), cmp.Compare(a.uuid, b.uuid))
	}
	places := slices.Clone(all)
	for _, first := range []string{"", "p", "p0", "p1", "p1\x00", "\xff"} {
		for _, second := range []string{"", "q0", "q1", "q1x", "\xff"} {
			for _, uuid := range []string{"", "n", "n000", "n035", "n070", "n075", "~"} {
				places = append(places, entry{first, second, uuid})
			}
		}
	}
	for _, place := range places {
		for _, q := range []driver.Query{
			{Index: "place"}, {Index: "place", Equal: parts("p0")}, {Index: "place", Equal: parts("p1")},
			{Index: "place", Equal: parts("p1", "q1")},
			{Index: "place", Equal: parts("p1"), From: []byte("q1"), To: []byte("q2")},
		} {
			for _, descending := range []bool{false, true} {
				want := slices.DeleteFunc(slices.Clone(all), func(e entry) bool {
					return len(q.Equal) > 0 && string(q.Equal[0]) != e.first ||
						len(q.Equal) > 1 && string(q.Equal[1]) != e.second ||
						q.From != nil && e.second != "q1" || (compare(e, place) > 0) == descending ||
						compare(e, place) == 0
				})
				if descending {
					slices.Reverse(want)
				}
				q.Limit, q.Descending = 100, descending
				q.After = s.Position(q.Index, parts(place.first, place.second), place.uuid)
				page, err := s.Query(f.ctx, q)
				f.must(err)
				if got := uuids(page.Records); got != uuidsOf(want) {
					f.Fatalf("%s after %q found %q, want %q", describeQuery(q), place, got, uuidsOf(want))
				}
			}
		}
	}
	for i, e := range all {
		for tag, descending := range map[string]bool{"x": false, "y": true} {
			want := slices.Clone(all[i+1:])
			if descending {
				want = slices.Clone(all[:i])
				slices.Reverse(want)
			}
			page, err := s.Query(f.ctx, driver.Query{Index: "tag", Equal: parts(tag), Descending: descending,
				Limit: 100, After: s.Position("tag", parts(tag), e.uuid)})
			f.must(err)
			if got := uuids(page.Records); got != uuidsOf(want) {
				f.Errorf("%s after %s found %q, want %q", tag, e.uuid, got, uuidsOf(want))
			}
		}
	}
}

// entry is a key in the index byPlace, and the UUID of its record.
type entry struct{ first, second, uuid string }

func uuidsOf(all []entry) string {
	names := make([]string, len(all))
	for i, e := range all {
		names[i] = e.uuid
	}
	return strings.Join(names, " ")
}
