package storetest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"belfry/pkg/store/driver"
)

func manyTests() []test {
	return []test{
		{"many records are read at once", manyRecords},
		{"records are counted by their keys", countsOfKeys},
	}
}

// manyRecords holds of each store: one that is no ManyGetter reads record by record.
func manyRecords(f *fixture) {
	s := f.open("Books")
	var asked, want []string
	for i := range 120 { // more than DynamoDB reads at once
		uuid := fmt.Sprintf("n%03d", i)
		asked = append(asked, uuid)
		if i%10 > 1 {
			continue // there never was one
		}
		s.put(uuid, 0, 1, text(strings.Repeat(uuid, 100)))
		if i%10 == 1 {
			want = append(want, uuid)
			continue
		}
		s.put(uuid, 1, 2, nil)
	}
	for _, all := range [][]string{asked, asked[:1], asked[1:2], asked[2:3]} {
		got, err := driver.GetMany(f.ctx, s.Store, all)
		f.must(err)
		slices.SortFunc(got, func(a, b driver.Record) int { return cmp.Compare(a.UUID, b.UUID) })
		expected := slices.DeleteFunc(slices.Clone(all), func(uuid string) bool { return !slices.Contains(want, uuid) })
		if uuids(got) != strings.Join(expected, " ") {
			f.Fatalf("GetMany returned %q, want %q", uuids(got), expected)
		}
		for _, r := range got {
			f.must(checkRecord(r,
				driver.Record{UUID: r.UUID, Revision: 1, Body: text(strings.Repeat(r.UUID, 100)).encode()}))
		}
	}
}

// countsOfKeys holds of each store that is a KeyCounter.
func countsOfKeys(f *fixture) {
	s := f.open("Books", byColor, byPlace, byTag)
	counter, ok := s.Store.(driver.KeyCounter)
	if !ok {
		return // lists read what they count
	}
	for i := range 9 {
		s.put(fmt.Sprintf("n%d", i), 0, 1,
			keyed("color", fmt.Sprint(i/3)).and("place", "x", fmt.Sprint(i)).and("tag", "x").and("tag",
				fmt.Sprint(i%2)))
	}
	s.put("n8", 1, 2, nil)
	s.put("n7", 1, 2, keyed("color", "0"))
	for _, c := range []struct {
		q           driver.Query
		limit, want int // -1: more than limit
	}{
		{driver.Query{}, 100, 8},
		{driver.Query{Index: "color"}, 100, 8},
		{driver.Query{Index: "color"}, 8, 8},
		{driver.Query{Index: "color"}, 7, -1},
		{driver.Query{Index: "place"}, 0, -1},
		{driver.Query{Index: "place", Equal: parts("y")}, 0, 0},
		{driver.Query{Index: "color", Descending: true, Limit: 1, After: []byte("x")}, 100, 8},
		{driver.Query{Index: "color", Equal: parts("0")}, 100, 4},
		{driver.Query{Index: "color", Equal: parts("7")}, 100, 0},
		{driver.Query{Index: "color", From: []byte("1")}, 100, 4},
		{driver.Query{Index: "color", To: []byte("1")}, 100, 4},
		{driver.Query{Index: "color", From: []byte("2"), To: []byte("1")}, 100, 0},
		{driver.Query{Index: "place", Equal: parts("x"), From: []byte("2"), To: []byte("5")}, 100, 3},
		{driver.Query{Index: "tag", Equal: parts("x")}, 100, 7},
		{driver.Query{Index: "tag", Equal: parts("1")}, 100, 3},
	} {
		f.eventually(func() error {
			got, all, err := counter.CountKeys(f.ctx, c.q, c.limit)
			if !all {
				got = -1
			}
			if err == nil && got != c.want {
				err = fmt.Errorf("%s: counted %d up to %d, want %d", describeQuery(c.q), got, c.limit, c.want)
			}
			return err
		})
	}
}
