package storetest

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"belfry/pkg/errs"
	"belfry/pkg/store/driver"
)

// The indexes of these tests.
var (
	byColor = driver.Index{Name: "color", Parts: 1}
	byPlace = driver.Index{Name: "place", Parts: 2}
	byTag   = driver.Index{Name: "tag", Parts: 1, Multi: true}
)

func parts(list ...string) [][]byte {
	out := make([][]byte, len(list))
	for i, part := range list {
		out[i] = []byte(part)
	}
	return out
}

func queryTests() []test {
	return []test{
		{"records are in the order of keys, then of UUIDs", queryOrder},
		{"parts are compared bytewise", queryBytewise},
		{"equal parts match whole parts", queryEqual},
		{"a range includes its lower bound and excludes its upper one", queryRange},
		{"a range follows the equal parts", queryRangeAfterEqual},
		{"a range may be bounded by any bytes", queryRangeEdgeCases},
		{"a record is found under each of its keys", queryMulti},
		{"a query returns complete records", queryReturnsRecords},
		{"an update moves a record in its indexes", queryMoves},
		{"indexes are distinct", queryIndexesAreDistinct},
		{"a duplicate key counts once", queryKeyTwice},
		{"a query that its index does not support is an internal error", queryInvalid},
	}
}

// find reads all pages of a query.
func (s *testStore) find(q driver.Query) ([]driver.Record, error) {
	if q.Limit == 0 {
		q.Limit = 1000
	}
	return collect(driver.Matches(s.f.ctx, limits{s}, q))
}

// wantMatches asserts which UUIDs a query finds, and that the descending query
// finds them in reverse order.
func (s *testStore) wantMatches(q driver.Query, want string) {
	s.f.Helper()
	s.wantFound(q, want)
	q.Descending = true
	names := strings.Fields(want)
	slices.Reverse(names)
	s.wantFound(q, strings.Join(names, " "))
}

// wantFound asserts which UUIDs a query finds, in this order.
func (s *testStore) wantFound(q driver.Query, want string) {
	s.f.Helper()
	s.f.eventually(func() error {
		got, err := s.find(q)
		if err == nil && uuids(got) != want {
			err = fmt.Errorf("%s found %q, want %q", describeQuery(q), uuids(got), want)
		}
		return err
	})
}

func describeQuery(q driver.Query) string {
	return fmt.Sprintf("query{%s equal %q from %q to %q limit %d descending %v}", q.Index, q.Equal, q.From, q.To,
		q.Limit, q.Descending)
}

func queryOrder(f *fixture) {
	s := f.open("Books", byColor)
	colors := map[string]string{"a": "red", "b": "blue", "c": "red", "d": "green", "e": "blue"}
	for i, uuid := range []string{"c", "e", "a", "d", "b"} {
		s.put(uuid, 0, uint64(i+1), keyed("color", colors[uuid]))
	}
	s.wantMatches(driver.Query{Index: "color"}, "b e d a c")
	s.put("f", 0, 6, text("without a key"))
	s.wantMatches(driver.Query{Index: "color"}, "b e d a c")
}

// edgeCases returns parts in order that a wrong encoding does not keep in order.
func edgeCases() []string {
	return []string{
		"", "\x00", "\x00\x00", "\x00\x00\x01", "\x00\x01", "\x00\x02", "\x00a", "\x00\xff", "\x00\xff\x00", "\x01",
		"\x01\x00", "\x01\x01",
		"\x02", "0", "a", "a\x00", "a\x00\x00", "a\x00\x01", "a\x00b", "a\x00\xff", "a\x01", "aa", "a\xff", "b",
		"\xc3\xa9", "\xfe\xff",
		"\xff", "\xff\x00", "\xff\x01", "\xff\xff", "\xff\xff\xff", strings.Repeat("\xff", driver.MaxPart),
	}
}

// putEdgeCases puts a record for each edge case, in another order. The UUIDs are
// in the order of the parts.
func putEdgeCases(s *testStore, d func(part string) *doc) []string {
	list := edgeCases()
	names := make([]string, len(list))
	for i := range list {
		at := (i*7 + 3) % len(list)
		names[at] = fmt.Sprintf("n%02d", at)
		s.put(names[at], 0, uint64(i+1), d(list[at]))
	}
	return names
}

func queryBytewise(f *fixture) {
	s := f.open("Books", byColor, byPlace)
	names := putEdgeCases(s, func(part string) *doc {
		return keyed("color", part).and("place", part, "x")
	})
	s.wantMatches(driver.Query{Index: "color"}, strings.Join(names, " "))
	s.wantMatches(driver.Query{Index: "place"}, strings.Join(names, " "))
	for i, part := range edgeCases() {
		s.wantFound(driver.Query{Index: "color", Equal: parts(part), Descending: i%2 == 0}, names[i])
		s.wantFound(driver.Query{Index: "place", Equal: parts(part), Descending: i%2 == 1}, names[i])
	}
}

func queryEqual(f *fixture) {
	s := f.open("Books", byPlace)
	places := [][2]string{{"a", "b"}, {"a", "bc"}, {"ab", "c"}, {"a", ""}, {"", "ab"}, {"abc", ""}, {"a\x00", "b"}}
	for i, place := range places {
		s.put(fmt.Sprint(i), 0, uint64(i+1), keyed("place", place[0], place[1]))
	}
	s.wantMatches(driver.Query{Index: "place", Equal: parts("a")}, "3 0 1")
	s.wantMatches(driver.Query{Index: "place", Equal: parts("a", "b")}, "0")
	s.wantMatches(driver.Query{Index: "place", Equal: parts("ab")}, "2")
	s.wantMatches(driver.Query{Index: "place", Equal: parts("")}, "4")
	s.wantMatches(driver.Query{Index: "place", Equal: parts("abc", "")}, "5")
	s.wantMatches(driver.Query{Index: "place", Equal: parts("a\x00")}, "6")
	s.wantMatches(driver.Query{Index: "place", Equal: parts("b")}, "")
	s.wantMatches(driver.Query{Index: "place"}, "4 3 0 1 6 2 5")
}

func queryRange(f *fixture) {
	s := f.open("Books", byColor)
	for i, color := range []string{"a", "b", "ba", "bz", "c", "ca", "d"} {
		s.put(color, 0, uint64(i+1), keyed("color", color))
	}
	for _, c := range []struct{ from, to, want string }{
		{"b", "c", "b ba bz"},
		{"b", "b", ""},
		{"b", "b\x00", "b"},
		{"b\x00", "bz\x00", "ba bz"},
		{"bb", "bz", ""},
		{"c", "b", ""},
		{"cb", "cc", ""},
		{"", "", ""},
		{"", "e", "a b ba bz c ca d"},
		{"d", "\xff", "d"},
	} {
		s.wantMatches(driver.Query{Index: "color", From: []byte(c.from), To: []byte(c.to)}, c.want)
	}
	s.wantMatches(driver.Query{Index: "color", From: []byte("c")}, "c ca d")
	s.wantMatches(driver.Query{Index: "color", To: []byte("b")}, "a")
	s.wantMatches(driver.Query{Index: "color", To: []byte("ba" + strings.Repeat("z", driver.MaxPart))}, "a b ba")
}

func queryRangeAfterEqual(f *fixture) {
	s := f.open("Books", byPlace)
	for i, place := range []string{"b1", "a1", "a2", "a21", "a3", "b2", "b3"} {
		s.put(place, 0, uint64(i+1), keyed("place", place[:1], place[1:]))
	}
	s.wantMatches(driver.Query{Index: "place", Equal: parts("a"), From: []byte("2")}, "a2 a21 a3")
	s.wantMatches(driver.Query{Index: "place", Equal: parts("a"), To: []byte("21")}, "a1 a2")
	s.wantMatches(driver.Query{Index: "place", Equal: parts("b"), From: []byte("1"), To: []byte("3")}, "b1 b2")
	s.wantMatches(driver.Query{Index: "place", Equal: parts("c"), From: []byte("1")}, "")
	s.wantMatches(driver.Query{Index: "place", From: []byte("b")}, "b1 b2 b3")
	s.wantMatches(driver.Query{Index: "place", To: []byte("b")}, "a1 a2 a21 a3")
}

// queryRangeEdgeCases bounds the second part by each edge case, and the first by
// some of them: a backend may have to read all partitions of an index for those.
func queryRangeEdgeCases(f *fixture) {
	s := f.open("Books", byColor, byPlace)
	list := edgeCases()
	names := putEdgeCases(s, func(part string) *doc { return keyed("color", part).and("place", "x", part) })
	for n, bound := range list {
		var below, above []string
		for i, part := range list {
			if part < bound {
				below = append(below, names[i])
			}
			if part >= bound {
				above = append(above, names[i])
			}
		}
		to, from := driver.Query{Index: "place", Equal: parts("x"), To: []byte(bound)},
			driver.Query{Index: "place", Equal: parts("x"), From: []byte(bound)}
		s.wantMatches(to, strings.Join(below, " "))
		s.wantMatches(from, strings.Join(above, " "))
		if n%4 == 3 {
			to.Index, to.Equal, from.Index, from.Equal = "color", nil, "color", nil
			s.wantFound(to, strings.Join(below, " "))
			s.wantFound(from, strings.Join(above, " "))
		}
	}
}

func queryMulti(f *fixture) {
	s := f.open("Books", byTag)
	s.put("a", 0, 1, keyed("tag", "x").and("tag", "y"))
	s.put("b", 0, 2, keyed("tag", "y").and("tag", "z"))
	s.wantMatches(driver.Query{Index: "tag", Equal: parts("x")}, "a")
	s.wantMatches(driver.Query{Index: "tag", Equal: parts("y")}, "a b")
	s.wantMatches(driver.Query{Index: "tag", Equal: parts("z")}, "b")
	s.put("a", 1, 3, keyed("tag", "z").and("tag", "x"))
	s.wantMatches(driver.Query{Index: "tag", Equal: parts("y")}, "b")
	s.wantMatches(driver.Query{Index: "tag", Equal: parts("z")}, "a b")
	s.put("b", 2, 4, nil)
	s.wantMatches(driver.Query{Index: "tag", Equal: parts("z")}, "a")
}

func queryReturnsRecords(f *fixture) {
	s := f.open("Books", byColor)
	d := keyed("color", "red")
	d.Text = strings.Repeat("x", 5000)
	s.put("a", 0, 9, d)
	f.eventually(func() error {
		got, err := s.find(driver.Query{Index: "color"})
		if err != nil || len(got) != 1 {
			return fmt.Errorf("found %q, error %w", uuids(got), err)
		}
		return checkRecord(got[0], driver.Record{UUID: "a", Revision: 9, Body: d.encode()})
	})
}

func queryMoves(f *fixture) {
	s := f.open("Books", byColor, byPlace)
	s.put("a", 0, 1, keyed("color", "red").and("place", "1", "2"))
	s.put("a", 1, 2, keyed("color", "blue").and("place", "1", "2"))
	s.wantMatches(driver.Query{Index: "color", Equal: parts("red")}, "")
	s.wantMatches(driver.Query{Index: "color", Equal: parts("blue")}, "a")
	s.wantMatches(driver.Query{Index: "place", Equal: parts("1", "2")}, "a")
	s.put("a", 2, 3, keyed("color", "blue"))
	s.wantMatches(driver.Query{Index: "place"}, "")
	s.put("a", 3, 4, text("no keys"))
	s.wantMatches(driver.Query{Index: "color"}, "")
	s.put("a", 4, 5, keyed("place", "1", "2"))
	s.wantMatches(driver.Query{Index: "place"}, "a")
}

func queryIndexesAreDistinct(f *fixture) {
	names := []string{"by", "by.", "by.x", "by,x", "by_x", "by-x", "BY", "b", "y"}
	var indexes []driver.Index
	for i, name := range names {
		indexes = append(indexes, driver.Index{Name: name, Parts: 1 + i%4})
	}
	s := f.open("Books", indexes...)
	for i, ix := range indexes {
		s.put(fmt.Sprint("u", i), 0, uint64(i+1), keyed(ix.Name, []string{"k", "l", "m", "n"}[:ix.Parts]...))
	}
	for i, ix := range indexes {
		s.wantMatches(driver.Query{Index: ix.Name}, fmt.Sprint("u", i))
		s.wantMatches(driver.Query{Index: ix.Name, Equal: [][]byte{[]byte("k")}}, fmt.Sprint("u", i))
	}
}

func queryKeyTwice(f *fixture) {
	s := f.open("Books", byTag)
	s.put("a", 0, 1, keyed("tag", "x").and("tag", "x"))
	s.wantMatches(driver.Query{Index: "tag", Equal: parts("x")}, "a")
	s.put("a", 1, 2, keyed("tag", "y"))
	s.wantMatches(driver.Query{Index: "tag", Equal: parts("x")}, "")
	s.wantMatches(driver.Query{Index: "tag", Equal: parts("y")}, "a")
}

func queryInvalid(f *fixture) {
	s := f.open("Books", byPlace, byTag)
	for _, q := range []driver.Query{
		{Index: "color", Limit: 1},
		{Index: "place"},
		{Index: "place", Equal: parts("a", "b", "c"), Limit: 1},
		{Index: "place", Equal: parts("a", "b"), From: []byte("c"), Limit: 1},
		{Index: "tag", Limit: 1},
		{Index: "tag", From: []byte("a"), Limit: 1},
	} {
		_, err := s.Query(f.ctx, q)
		f.wantKind(err, errs.Internal)
	}
	_, err := s.Scan(f.ctx, nil, 0)
	f.wantKind(err, errs.Internal)
	_, _, err = s.Pending(f.ctx, nil, 0)
	f.wantKind(err, errs.Internal)
	_, err = s.Purge(f.ctx, 1, 0)
	f.wantKind(err, errs.Internal)
}

func pageTests() []test {
	return []test{
		{"pages of any size are complete", pagesAreComplete},
		{"paging continues while records are deleted and created", pagesDuringWrites},
		{"records with the same key are paged", pagesOfOneKey},
		{"a page ends before it is too large", largePages},
		{"a page continues after each of its records", pagePositions},
		{"a page continues in the other direction at each of its records", pagesTurn},
		{"a query continues after any key and UUID", pagesFromKeys},
	}
}

func pagesAreComplete(f *fixture) {
	s := f.open("Books", byPlace)
	var want []string
	for i := range 11 {
		uuid := fmt.Sprintf("n%02d", i)
		s.put(uuid, 0, uint64(i+1), keyed("place", fmt.Sprint(i/4), fmt.Sprint(i%4/2)))
		want = append(want, uuid)
	}
	for _, limit := range []int{1, 2, 3, 4, 5} {
		s.wantMatches(driver.Query{Index: "place", Limit: limit, Equal: parts("1")}, "n04 n05 n06 n07")
	}
	for _, limit := range []int{1, 4, 11, 12} {
		s.wantMatches(driver.Query{Index: "place", Limit: limit}, strings.Join(want, " "))
	}
	for _, limit := range []int{3, 7, 8} {
		s.wantMatches(driver.Query{Index: "place", Limit: limit, From: []byte("1")}, strings.Join(want[4:], " "))
		s.wantMatches(driver.Query{Index: "place", Limit: limit, To: []byte("2")}, strings.Join(want[:8], " "))
	}
}

func pagesDuringWrites(f *fixture) {
	s := f.open("Books", byColor)
	for i, uuid := range []string{"a", "c", "e", "g", "i"} {
		s.put(uuid, 0, uint64(i+1), keyed("color", uuid))
	}
	s.wantMatches(driver.Query{Index: "color"}, "a c e g i")
	first, err := s.Query(f.ctx, driver.Query{Index: "color", Limit: 2})
	f.must(err)
	next := bytes.Clone(first.Next)
	s.put("c", 2, 6, nil)
	s.put("b", 0, 7, keyed("color", "b"))
	s.put("f", 0, 8, keyed("color", "f"))
	s.wantMatches(driver.Query{Index: "color", From: []byte("b")}, "b e f g i")
	rest, err := s.find(driver.Query{Index: "color", Limit: 2, After: next})
	f.must(err)
	if got := uuids(first.Records) + " " + uuids(rest); got != "a c e f g i" {
		f.Fatalf("pages found %q, want %q", got, "a c e f g i")
	}
}

func pagesOfOneKey(f *fixture) {
	s := f.open("Books", byColor)
	var want []string
	for i := range 25 {
		uuid := fmt.Sprintf("n%02d", i)
		want = append(want, uuid)
		s.put(uuid, 0, uint64(i+1), keyed("color", "red"))
	}
	s.wantMatches(driver.Query{Index: "color", Equal: parts("red"), Limit: 10}, strings.Join(want, " "))
	s.wantMatches(driver.Query{Index: "color", Equal: parts("red"), From: nil, Limit: 5}, strings.Join(want, " "))
}
