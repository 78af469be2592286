package storetest

import (
	"fmt"
	"slices"
	"strings"

	"belfry/pkg/store/driver"
)

func scanTests() []test {
	return []test{
		{"records are in the order of UUIDs", scanOrder},
		{"pages of any size are complete", scanPages},
		{"a scan continues while records are deleted and created", scanDuringWrites},
		{"a scan of an empty store is empty", scanEmpty},
		{"a scan returns complete records", scanReturnsRecords},
	}
}

// scan reads all pages.
func (s *testStore) scan(limit int) ([]driver.Record, error) {
	return collect(driver.Records(s.f.ctx, limits{s}, limit))
}

// scanBackward reads all pages from the end.
func (s *testStore) scanBackward(limit int) ([]driver.Record, error) {
	var all []driver.Record
	for before := []byte(nil); ; {
		page, err := limits{s}.ScanBackward(s.f.ctx, before, limit)
		if err != nil {
			return nil, err
		}
		all = append(all, page.Records...)
		if before = page.Next; before == nil {
			return all, nil
		}
	}
}

// wantScan asserts which UUIDs a scan returns, in small pages and in one.
func (s *testStore) wantScan(want string) {
	s.f.Helper()
	s.wantScanInPages(want, 2, 1000)
}

func (s *testStore) wantScanInPages(want string, limits ...int) {
	s.f.Helper()
	for _, limit := range limits {
		s.f.eventually(func() error {
			got, err := s.scan(limit)
			if err == nil && uuids(got) != want {
				return fmt.Errorf("a scan in pages of %d returned %q, want %q", limit, uuids(got), want)
			}
			if err != nil {
				return err
			}
			got, err = s.scanBackward(limit)
			slices.Reverse(got)
			if err == nil && uuids(got) != want {
				err = fmt.Errorf("a scan backward in pages of %d returned the reverse of %q, want that of %q", limit,
					uuids(got), want)
			}
			return err
		})
	}
}

func scanOrder(f *fixture) {
	s := f.open("Books")
	names := []string{"b", "a", "B", "a.b", "a-b", "a_b", "a@b", "a+b", "ab", "10", "9", "z", strings.Repeat("z", 200)}
	for i, uuid := range names {
		s.put(uuid, 0, uint64(i+1), text(uuid))
	}
	slices.Sort(names)
	s.wantScan(strings.Join(names, " "))
}

func scanPages(f *fixture) {
	s := f.open("Books")
	var want []string
	for i := range 21 {
		uuid := fmt.Sprintf("n%02d", i*37%21)
		s.put(uuid, 0, uint64(i+1), text(uuid))
		want = append(want, uuid)
	}
	slices.Sort(want)
	s.wantScanInPages(strings.Join(want, " "), 1, 2, 3, 7, 20, 21, 22)
}

func scanDuringWrites(f *fixture) {
	s := f.open("Books")
	for i, uuid := range []string{"a", "c", "e", "g"} {
		s.put(uuid, 0, uint64(i+1), text(uuid))
	}
	s.wantScan("a c e g")
	first, err := s.Scan(f.ctx, nil, 2)
	f.must(err)
	s.put("c", 2, 5, nil)
	s.put("b", 0, 6, text("b"))
	s.put("f", 0, 7, text("f"))
	s.wantScan("a b e f g")
	second, err := s.Scan(f.ctx, first.Next, 100)
	f.must(err)
	if got := uuids(first.Records) + " " + uuids(second.Records); got != "a c e f g" || second.Next != nil {
		f.Fatalf("the pages have %q and the next is %q, want %q and no next", got, second.Next, "a c e f g")
	}
}

func scanEmpty(f *fixture) {
	s := f.open("Books")
	s.wantScan("")
	s.put("a", 0, 1, text("one"))
	s.put("a", 1, 2, nil)
	s.wantScan("")
}

func scanReturnsRecords(f *fixture) {
	s := f.open("Books")
	d := text(strings.Repeat("x", 10_000))
	s.put("a", 0, 1, d)
	f.eventually(func() error {
		got, err := s.scan(10)
		if err != nil || len(got) != 1 {
			return fmt.Errorf("the scan returned %q, error %w", uuids(got), err)
		}
		return checkRecord(got[0], driver.Record{UUID: "a", Revision: 1, Body: d.encode()})
	})
}
