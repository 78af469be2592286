package storetest

import (
	"fmt"
	"slices"
	"strings"

	"belfry/pkg/store/driver"
)

func scanTests() []test {
	return []test{
		{"records come in the order of their uuids", scanOrder},
		{"pages of any size make up the whole", scanPages},
		{"a scan goes on where records vanish and appear", scanGoesOn},
		{"an empty store has nothing to scan", scanEmpty},
		{"scanned records are whole", scanWhole},
	}
}

// scan reads all pages.
func (s *shelf) scan(limit int) ([]driver.Record, error) {
	var all []driver.Record
	var after []byte
	for {
		page, err := s.Scan(s.w.ctx, after, limit)
		if err != nil {
			return nil, err
		}
		if len(page.Records) > limit {
			return nil, fmt.Errorf("a page of %d records, at most %d were asked", len(page.Records), limit)
		}
		all = append(all, page.Records...)
		if page.Next == nil {
			return all, nil
		}
		after = page.Next
	}
}

// scans asserts which uuids a scan comes to see, in pages of several sizes.
func (s *shelf) scans(want string) {
	s.w.Helper()
	for _, limit := range []int{1, 2, 3, 7, 1000} {
		s.w.eventually(func() error {
			got, err := s.scan(limit)
			if err == nil && uuids(got) != want {
				err = fmt.Errorf("a scan in pages of %d saw %q, want %q", limit, uuids(got), want)
			}
			return err
		})
	}
}

func scanOrder(w *world) {
	s := w.open("Books")
	names := []string{"b", "a", "B", "a.b", "a-b", "a_b", "a@b", "a+b", "ab", "10", "9", "z", strings.Repeat("z", 200)}
	for i, uuid := range names {
		s.put(uuid, 0, uint64(i+1), text(uuid))
	}
	slices.Sort(names)
	s.scans(strings.Join(names, " "))
}

func scanPages(w *world) {
	s := w.open("Books")
	var want []string
	for i := range 50 {
		uuid := fmt.Sprintf("n%02d", i*37%50)
		s.put(uuid, 0, uint64(i+1), text(uuid))
		want = append(want, uuid)
	}
	slices.Sort(want)
	s.scans(strings.Join(want, " "))
}

func scanGoesOn(w *world) {
	s := w.open("Books")
	for i, uuid := range []string{"a", "c", "e", "g"} {
		s.put(uuid, 0, uint64(i+1), text(uuid))
	}
	s.scans("a c e g")
	first, err := s.Scan(w.ctx, nil, 2)
	w.must(err)
	s.put("c", 2, 5, nil)
	s.put("b", 0, 6, text("b"))
	s.put("f", 0, 7, text("f"))
	s.scans("a b e f g")
	second, err := s.Scan(w.ctx, first.Next, 100)
	w.must(err)
	if got := uuids(first.Records) + " " + uuids(second.Records); got != "a c e f g" || second.Next != nil {
		w.Fatalf("pages saw %q and then %q, want %q and no more", got, second.Next, "a c e f g")
	}
}

func scanEmpty(w *world) {
	s := w.open("Books")
	s.scans("")
	s.put("a", 0, 1, text("one"))
	s.put("a", 1, 2, nil)
	s.scans("")
}

func scanWhole(w *world) {
	s := w.open("Books")
	d := text(strings.Repeat("x", 10_000))
	s.put("a", 0, 1, d)
	w.eventually(func() error {
		got, err := s.scan(10)
		if err != nil || len(got) != 1 {
			return fmt.Errorf("saw %q, error %w", uuids(got), err)
		}
		return sameRecord(got[0], driver.Record{UUID: "a", Revision: 1, Body: d.encode()})
	})
}
