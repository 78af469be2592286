package storetest

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"belfry/pkg/store/driver"
)

// The indexes of these tests.
var (
	byColour = driver.Index{Name: "colour", Parts: 1}
	byPlace  = driver.Index{Name: "place", Parts: 2}
	byTag    = driver.Index{Name: "tag", Parts: 1, Multi: true}
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
		{"records come in the order of their keys, then of their uuids", queryOrder},
		{"parts are compared bytewise", queryBytewise},
		{"equal parts match whole parts", queryEqual},
		{"a range is closed, and its end takes in what begins with it", queryRange},
		{"a range follows the equal parts", queryRangeBehindEqual},
		{"bytes at the borders keep their order in a range", queryRangeBorders},
		{"a record is found under each of its keys", queryMulti},
		{"found records are whole", queryWhole},
		{"an update moves a record in its indexes", queryMoves},
		{"indexes are told apart", queryIndexesApart},
		{"a key given twice counts once", queryKeyTwice},
	}
}

// find reads all pages of a query.
func (s *shelf) find(q driver.Query) ([]driver.Record, error) {
	var all []driver.Record
	if q.Limit == 0 {
		q.Limit = 1000
	}
	for {
		page, err := s.Query(s.w.ctx, q)
		if err != nil {
			return nil, err
		}
		if len(page.Records) > q.Limit {
			return nil, fmt.Errorf("a page of %d records, at most %d were asked", len(page.Records), q.Limit)
		}
		all = append(all, page.Records...)
		if page.Next == nil {
			return all, nil
		}
		q.After = page.Next
	}
}

// finds asserts which uuids a query comes to find, and that descending it
// finds them in reverse.
func (s *shelf) finds(q driver.Query, want string) {
	s.w.Helper()
	s.w.eventually(func() error {
		got, err := s.find(q)
		if err == nil && uuids(got) != want {
			err = fmt.Errorf("%s found %q, want %q", showQuery(q), uuids(got), want)
		}
		return err
	})
	q.Descending = true
	names := strings.Fields(want)
	slices.Reverse(names)
	backwards := strings.Join(names, " ")
	s.w.eventually(func() error {
		got, err := s.find(q)
		if err == nil && uuids(got) != backwards {
			err = fmt.Errorf("%s descending found %q, want %q", showQuery(q), uuids(got), backwards)
		}
		return err
	})
}

func showQuery(q driver.Query) string {
	return fmt.Sprintf("query{%s equal %q from %q to %q limit %d}", q.Index, q.Equal, q.From, q.To, q.Limit)
}

func queryOrder(w *world) {
	s := w.open("Books", byColour)
	colours := map[string]string{"a": "red", "b": "blue", "c": "red", "d": "green", "e": "blue"}
	for i, uuid := range []string{"c", "e", "a", "d", "b"} {
		s.put(uuid, 0, uint64(i+1), keyed("colour", colours[uuid]))
	}
	s.finds(driver.Query{Index: "colour"}, "b e d a c")
	s.put("f", 0, 6, text("without a key"))
	s.finds(driver.Query{Index: "colour"}, "b e d a c")
}

// awkward are parts in their order that a careless encoding gets wrong.
func awkward() []string {
	return []string{
		"", "\x00", "\x00\x00", "\x00\x00\x01", "\x00\x01", "\x00\x02", "\x00a", "\x00\xff", "\x00\xff\x00", "\x01", "\x01\x00", "\x01\x01",
		"\x02", "0", "a", "a\x00", "a\x00\x00", "a\x00\x01", "a\x00b", "a\x00\xff", "a\x01", "aa", "a\xff", "b", "\xc3\xa9", "\xfe\xff",
		"\xff", "\xff\x00", "\xff\x01", "\xff\xff", "\xff\xff\xff", strings.Repeat("\xff", driver.MaxPart),
	}
}

// putAwkward puts one record for each awkward part, whose uuid names its
// place, in an order that is not theirs.
func putAwkward(s *shelf, d func(part string) *doc) []string {
	list := awkward()
	names := make([]string, len(list))
	for i := range list {
		at := (i*7 + 3) % len(list)
		names[at] = fmt.Sprintf("n%02d", at)
		s.put(names[at], 0, uint64(i+1), d(list[at]))
	}
	return names
}

func queryBytewise(w *world) {
	s := w.open("Books", byColour, byPlace)
	names := putAwkward(s, func(part string) *doc {
		return keyed("colour", part).and("place", part, "x")
	})
	s.finds(driver.Query{Index: "colour"}, strings.Join(names, " "))
	s.finds(driver.Query{Index: "place"}, strings.Join(names, " "))
	for i, part := range awkward() {
		s.finds(driver.Query{Index: "colour", Equal: parts(part)}, names[i])
		s.finds(driver.Query{Index: "place", Equal: parts(part)}, names[i])
	}
}

func queryEqual(w *world) {
	s := w.open("Books", byPlace)
	places := [][2]string{{"a", "b"}, {"a", "bc"}, {"ab", "c"}, {"a", ""}, {"", "ab"}, {"abc", ""}, {"a\x00", "b"}}
	for i, place := range places {
		s.put(fmt.Sprint(i), 0, uint64(i+1), keyed("place", place[0], place[1]))
	}
	s.finds(driver.Query{Index: "place", Equal: parts("a")}, "3 0 1")
	s.finds(driver.Query{Index: "place", Equal: parts("a", "b")}, "0")
	s.finds(driver.Query{Index: "place", Equal: parts("ab")}, "2")
	s.finds(driver.Query{Index: "place", Equal: parts("")}, "4")
	s.finds(driver.Query{Index: "place", Equal: parts("abc", "")}, "5")
	s.finds(driver.Query{Index: "place", Equal: parts("a\x00")}, "6")
	s.finds(driver.Query{Index: "place", Equal: parts("b")}, "")
	s.finds(driver.Query{Index: "place"}, "4 3 0 1 6 2 5")
}

func queryRange(w *world) {
	s := w.open("Books", byColour)
	for i, colour := range []string{"a", "b", "ba", "bz", "c", "ca", "d"} {
		s.put(colour, 0, uint64(i+1), keyed("colour", colour))
	}
	for _, c := range []struct{ from, to, want string }{
		{"b", "c", "b ba bz c ca"},
		{"b", "b", "b ba bz"},
		{"ba", "ba", "ba"},
		{"bb", "bz", "bz"},
		{"c", "b", ""},
		{"cb", "cc", ""},
		{"", "", "a b ba bz c ca d"},
		{"d", "\xff", "d"},
	} {
		s.finds(driver.Query{Index: "colour", From: []byte(c.from), To: []byte(c.to)}, c.want)
	}
	s.finds(driver.Query{Index: "colour", From: []byte("c")}, "c ca d")
	s.finds(driver.Query{Index: "colour", To: []byte("b")}, "a b ba bz")
}

func queryRangeBehindEqual(w *world) {
	s := w.open("Books", byPlace)
	for i, place := range []string{"b1", "a1", "a2", "a21", "a3", "b2", "b3"} {
		s.put(place, 0, uint64(i+1), keyed("place", place[:1], place[1:]))
	}
	s.finds(driver.Query{Index: "place", Equal: parts("a"), From: []byte("2")}, "a2 a21 a3")
	s.finds(driver.Query{Index: "place", Equal: parts("a"), To: []byte("2")}, "a1 a2 a21")
	s.finds(driver.Query{Index: "place", Equal: parts("b"), From: []byte("1"), To: []byte("2")}, "b1 b2")
	s.finds(driver.Query{Index: "place", Equal: parts("c"), From: []byte("1")}, "")
	s.finds(driver.Query{Index: "place", From: []byte("b")}, "b1 b2 b3")
	s.finds(driver.Query{Index: "place", To: []byte("a")}, "a1 a2 a21 a3")
}

func queryRangeBorders(w *world) {
	s := w.open("Books", byColour)
	list := awkward()
	names := putAwkward(s, func(part string) *doc { return keyed("colour", part) })
	for _, bound := range list {
		var below, above []string
		for i, part := range list {
			if part <= bound || strings.HasPrefix(part, bound) {
				below = append(below, names[i])
			}
			if part >= bound {
				above = append(above, names[i])
			}
		}
		s.finds(driver.Query{Index: "colour", To: []byte(bound)}, strings.Join(below, " "))
		s.finds(driver.Query{Index: "colour", From: []byte(bound)}, strings.Join(above, " "))
	}
}

func queryMulti(w *world) {
	s := w.open("Books", byTag)
	s.put("a", 0, 1, keyed("tag", "x").and("tag", "y"))
	s.put("b", 0, 2, keyed("tag", "y").and("tag", "z"))
	s.finds(driver.Query{Index: "tag", Equal: parts("x")}, "a")
	s.finds(driver.Query{Index: "tag", Equal: parts("y")}, "a b")
	s.finds(driver.Query{Index: "tag", Equal: parts("z")}, "b")
	s.put("a", 1, 3, keyed("tag", "z").and("tag", "x"))
	s.finds(driver.Query{Index: "tag", Equal: parts("y")}, "b")
	s.finds(driver.Query{Index: "tag", Equal: parts("z")}, "a b")
	s.put("b", 2, 4, nil)
	s.finds(driver.Query{Index: "tag", Equal: parts("z")}, "a")
	w.eventually(func() error {
		got, err := s.find(driver.Query{Index: "tag"})
		if err == nil && (len(got) == 0 || strings.Trim(uuids(got), "a ") != "") {
			err = fmt.Errorf("all tags found %q, want a, once or more", uuids(got))
		}
		return err
	})
}

func queryWhole(w *world) {
	s := w.open("Books", byColour)
	d := keyed("colour", "red")
	d.Text = strings.Repeat("x", 5000)
	s.put("a", 0, 9, d)
	w.eventually(func() error {
		got, err := s.find(driver.Query{Index: "colour"})
		if err != nil || len(got) != 1 {
			return fmt.Errorf("found %q, error %w", uuids(got), err)
		}
		return sameRecord(got[0], driver.Record{UUID: "a", Revision: 9, Body: d.encode()})
	})
}

func queryMoves(w *world) {
	s := w.open("Books", byColour, byPlace)
	s.put("a", 0, 1, keyed("colour", "red").and("place", "1", "2"))
	s.put("a", 1, 2, keyed("colour", "blue").and("place", "1", "2"))
	s.finds(driver.Query{Index: "colour", Equal: parts("red")}, "")
	s.finds(driver.Query{Index: "colour", Equal: parts("blue")}, "a")
	s.finds(driver.Query{Index: "place", Equal: parts("1", "2")}, "a")
	s.put("a", 2, 3, keyed("colour", "blue"))
	s.finds(driver.Query{Index: "place"}, "")
	s.put("a", 3, 4, text("no keys"))
	s.finds(driver.Query{Index: "colour"}, "")
	s.put("a", 4, 5, keyed("place", "1", "2"))
	s.finds(driver.Query{Index: "place"}, "a")
}

func queryIndexesApart(w *world) {
	names := []string{"by", "by.", "by.x", "by,x", "by_x", "by-x", "BY", "b", "y"}
	var indexes []driver.Index
	for i, name := range names {
		indexes = append(indexes, driver.Index{Name: name, Parts: 1 + i%4})
	}
	s := w.open("Books", indexes...)
	for i, ix := range indexes {
		s.put(fmt.Sprint("u", i), 0, uint64(i+1), keyed(ix.Name, []string{"k", "l", "m", "n"}[:ix.Parts]...))
	}
	for i, ix := range indexes {
		s.finds(driver.Query{Index: ix.Name}, fmt.Sprint("u", i))
		s.finds(driver.Query{Index: ix.Name, Equal: [][]byte{[]byte("k")}}, fmt.Sprint("u", i))
	}
}

func queryKeyTwice(w *world) {
	s := w.open("Books", byTag)
	s.put("a", 0, 1, keyed("tag", "x").and("tag", "x"))
	s.finds(driver.Query{Index: "tag", Equal: parts("x")}, "a")
	s.put("a", 1, 2, keyed("tag", "y"))
	s.finds(driver.Query{Index: "tag", Equal: parts("x")}, "")
	s.finds(driver.Query{Index: "tag", Equal: parts("y")}, "a")
}

func pageTests() []test {
	return []test{
		{"pages of any size make up the whole", pagesMakeWhole},
		{"pages go on where records vanish and appear", pagesGoOn},
		{"pages of one key go on among its records", pagesOfOneKey},
	}
}

func pagesMakeWhole(w *world) {
	s := w.open("Books", byPlace)
	var want []string
	for i := range 11 {
		uuid := fmt.Sprintf("n%02d", i)
		s.put(uuid, 0, uint64(i+1), keyed("place", fmt.Sprint(i/4), fmt.Sprint(i%4/2)))
		want = append(want, uuid)
	}
	for limit := 1; limit <= 12; limit++ {
		s.finds(driver.Query{Index: "place", Limit: limit}, strings.Join(want, " "))
		s.finds(driver.Query{Index: "place", Limit: limit, Equal: parts("1")}, "n04 n05 n06 n07")
		s.finds(driver.Query{Index: "place", Limit: limit, From: []byte("1")}, strings.Join(want[4:], " "))
		s.finds(driver.Query{Index: "place", Limit: limit, To: []byte("1")}, strings.Join(want[:8], " "))
	}
}

func pagesGoOn(w *world) {
	s := w.open("Books", byColour)
	for i, uuid := range []string{"a", "c", "e", "g", "i"} {
		s.put(uuid, 0, uint64(i+1), keyed("colour", uuid))
	}
	s.finds(driver.Query{Index: "colour"}, "a c e g i")
	first, err := s.Query(w.ctx, driver.Query{Index: "colour", Limit: 2})
	w.must(err)
	next := bytes.Clone(first.Next)
	s.put("c", 2, 6, nil)
	s.put("b", 0, 7, keyed("colour", "b"))
	s.put("f", 0, 8, keyed("colour", "f"))
	s.finds(driver.Query{Index: "colour", From: []byte("b")}, "b e f g i")
	rest, err := s.find(driver.Query{Index: "colour", Limit: 2, After: next})
	w.must(err)
	if got := uuids(first.Records) + " " + uuids(rest); got != "a c e f g i" {
		w.Fatalf("pages found %q, want %q", got, "a c e f g i")
	}
}

func pagesOfOneKey(w *world) {
	s := w.open("Books", byColour)
	var want []string
	for i := range 25 {
		uuid := fmt.Sprintf("n%02d", i)
		want = append(want, uuid)
		s.put(uuid, 0, uint64(i+1), keyed("colour", "red"))
	}
	s.finds(driver.Query{Index: "colour", Equal: parts("red"), Limit: 10}, strings.Join(want, " "))
	s.finds(driver.Query{Index: "colour", Equal: parts("red"), From: nil, Limit: 5}, strings.Join(want, " "))
}
