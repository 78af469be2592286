package storetest

import (
	"fmt"
	"strings"

	"belfry/pkg/store/driver"
)

// readers returns the ways to read pages of a store whose records have the color red
// and the tag new.
func (s *testStore) readers() map[string]func(after []byte, limit int) (driver.Page, error) {
	query := func(index string, part string, descending bool) func([]byte, int) (driver.Page, error) {
		return func(after []byte, limit int) (driver.Page, error) {
			return s.Query(s.f.ctx,
				driver.Query{Index: index, Equal: parts(part), Descending: descending, After: after, Limit: limit})
		}
	}
	return map[string]func([]byte, int) (driver.Page, error){
		"Scan":  func(after []byte, limit int) (driver.Page, error) { return s.Scan(s.f.ctx, after, limit) },
		"Query": query("color", "red", false), "Query, descending": query("color", "red", true),
		"Query of many keys": query("tag", "new", false), "Query of many keys, descending": query("tag", "new", true),
	}
}

func largePages(f *fixture) {
	s := f.open("Books", byColor, byTag)
	for i, uuid := range []string{"a", "b", "c", "d", "e", "f"} {
		d := keyed("color", "red").and("tag", "new")
		if uuid != "d" {
			d.Text = strings.Repeat("x", largestBody-200)
		}
		s.put(uuid, 0, uint64(i+1), d)
	}
	s.wantScanInPages("a b c d e f", 1000)
	s.wantMatches(driver.Query{Index: "color", Equal: parts("red")}, "a b c d e f")
	s.wantMatches(driver.Query{Index: "tag", Equal: parts("new")}, "a b c d e f")
	small, err := s.Query(f.ctx, driver.Query{Index: "color", Equal: parts("red"), Limit: 10, MaxBytes: largestBody})
	f.must(err)
	if got := uuids(small.Records); got != "a" || small.Next == nil {
		f.Errorf("a page of at most the bytes of one record has %s", got)
	}
	for name, read := range s.readers() {
		var pages []string
		for after, more := []byte(nil), true; more; {
			page, err := read(after, 1000)
			f.must(err)
			size := 0
			for _, r := range page.Records {
				size += len(r.Body)
			}
			if size > driver.MaxPageBytes || len(page.Records) == 0 {
				f.Errorf("%s returned a page of %d records with %d bytes", name, len(page.Records), size)
			}
			pages = append(pages, uuids(page.Records))
			after, more = page.Next, page.Next != nil
		}
		want := "a b|c d e|f"
		if strings.Contains(name, "descending") {
			want = "f e d|c b|a"
		}
		if got := strings.Join(pages, "|"); got != want {
			f.Errorf("%s returned the pages %s, want %s", name, got, want)
		}
	}
}

func pagePositions(f *fixture) {
	s := f.open("Books", byColor, byTag)
	for i := range 5 {
		s.put(fmt.Sprint("n", i), 0, uint64(i+1), keyed("color", "red").and("tag", "new").and("tag", "old"))
	}
	s.wantScan("n0 n1 n2 n3 n4")
	s.wantMatches(driver.Query{Index: "color", Equal: parts("red")}, "n0 n1 n2 n3 n4")
	s.wantMatches(driver.Query{Index: "tag", Equal: parts("new")}, "n0 n1 n2 n3 n4")
	for name, read := range s.readers() {
		all, err := read(nil, 1000)
		f.must(err)
		if len(all.Records) != 5 || len(all.Positions) != 5 || all.Next != nil {
			f.Fatalf("%s returned %d records and %d positions, and %q is next", name, len(all.Records),
				len(all.Positions), all.Next)
		}
		for i, position := range all.Positions {
			rest, err := read(position, 1000)
			f.must(err)
			if got, want := uuids(rest.Records), uuids(all.Records[i+1:]); got != want {
				f.Errorf("%s after the position of %s returned %q, want %q", name, all.Records[i].UUID, got, want)
			}
		}
		short, err := read(nil, 2)
		f.must(err)
		if string(short.Next) != string(all.Positions[1]) {
			f.Errorf("%s: a page of two ends at %q, want the position of its last record", name, short.Next)
		}
	}
}
