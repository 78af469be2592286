package filestore

import (
	"fmt"
	"testing"

	"belfry/pkg/store/driver"
)

// TestIntersectionsReadRecordsWhereMostHaveAllKeys: no other index is read there, as records tell their keys. Elsewhere
// no record is read in vain.
func TestIntersectionsReadRecordsWhereMostHaveAllKeys(t *testing.T) {
	b, err := Open(t.TempDir(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	indexes := []driver.Index{{Name: "all", Parts: 1}, {Name: "most", Parts: 1}, {Name: "few", Parts: 1}}
	s, err := b.Open(t.Context(),
		driver.Spec{Name: "Books", Indexes: indexes, Keys: func([]byte) []driver.Key { return nil }})
	if err != nil {
		t.Fatal(err)
	}
	const records = 90
	one := [][]byte{[]byte("1")}
	for i := range records {
		w := driver.Write{UUID: fmt.Sprintf("n%02d", i), Revision: 1, Body: []byte("{}"),
			Keys: []driver.Key{{Index: "all", Parts: one}}}
		if i%3 != 0 || i > 60 {
			w.Keys = append(w.Keys, driver.Key{Index: "most", Parts: one})
		}
		if i%5 == 0 {
			w.Keys = append(w.Keys, driver.Key{Index: "few", Parts: one})
		}
		if err := s.Put(t.Context(), w); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		with             string
		found, min, keys int
	}{
		{"most", 40 + records - 61, records, records},
		{"few", 18, 18, 3*18 + 3}, // of each the lead's key, and one of the other after it, to which the lead moves
	} {
		for _, descending := range []bool{false, true} {
			q := driver.Query{Index: "all", Equal: one, Limit: records, Descending: descending}
			page, err := s.(driver.Intersecter).Intersect(t.Context(), q,
				[]driver.KeyCondition{{Index: c.with, Equal: [][][]byte{one}}}, 10*records)
			if err != nil || len(page.Records) != c.found || page.Keys < c.min || page.Keys > c.keys {
				t.Errorf("%s: %d records, want %d; %d keys were compared, want at most %d: %v", c.with,
					len(page.Records), c.found, page.Keys, c.keys, err)
			}
		}
	}
}
