package storetest

import (
	"fmt"
	"slices"
	"strings"

	"belfry/pkg/store/driver"
)

// pagesTurn: the position of a record is where a query, or a scan, of the other direction continues, which has what is
// before that record, also when it is gone.
func pagesTurn(f *fixture) {
	s := f.open("Books", byColor, byPlace, byTag)
	var names []string
	for i := range 7 {
		uuid := fmt.Sprintf("n%d", i)
		s.put(uuid, 0, uint64(i+1),
			keyed("color", fmt.Sprint(i/2)).and("place", "x", fmt.Sprint(i/3)).and("tag", "x").and("tag", "y"))
		names = append(names, uuid)
	}
	s.wantScan(strings.Join(names, " "))
	for _, q := range []driver.Query{
		{Index: "color"}, {Index: "color", From: []byte("0"), To: []byte("9")}, {Index: "place", Equal: parts("x")},
		{Index: "tag", Equal: parts("x")}, {},
	} {
		q.Limit = 100
		for _, descending := range []bool{false, true} {
			order := slices.Clone(names)
			if descending {
				slices.Reverse(order)
			}
			page, err := s.inDirection(q, descending, nil)
			f.must(err)
			if uuids(page.Records) != strings.Join(order, " ") {
				f.Fatalf("%s found %q, want %q", describeQuery(q), uuids(page.Records), order)
			}
			for i, position := range page.Positions {
				back, err := s.inDirection(q, !descending, position)
				f.must(err)
				want := slices.Clone(order[:i])
				slices.Reverse(want)
				if got := uuids(back.Records); got != strings.Join(want, " ") {
					f.Fatalf("%s, turned at %s, found %q, want %q", describeQuery(q), order[i], got, want)
				}
			}
		}
	}
	page, err := s.inDirection(driver.Query{Index: "color", Limit: 100}, false, nil)
	f.must(err)
	s.put("n3", 4, 8, nil)
	s.wantFound(driver.Query{Index: "color", Limit: 100}, "n0 n1 n2 n4 n5 n6")
	back, err := s.inDirection(driver.Query{Index: "color", Limit: 100}, true, page.Positions[3])
	f.must(err)
	if got := uuids(back.Records); got != "n2 n1 n0" {
		f.Fatalf("turned at a record that is gone: %q, want %q", got, "n2 n1 n0")
	}
}

// inDirection reads a page of a query, or without an index of a scan.
func (s *testStore) inDirection(q driver.Query, descending bool, after []byte) (driver.Page, error) {
	q.Descending, q.After = descending, after
	switch {
	case q.Index != "":
		return s.Query(s.f.ctx, q)
	case descending:
		return s.ScanBackward(s.f.ctx, after, q.Limit)
	default:
		return s.Scan(s.f.ctx, after, q.Limit)
	}
}
