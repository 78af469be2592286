package filestore

import (
	"fmt"
	"testing"

	"belfry/pkg/store/driver"
)

// TestAnIntersectionReadsRecordsWhereMostHaveAllKeys: no other index is read there, as records tell their keys.
func TestAnIntersectionReadsRecordsWhereMostHaveAllKeys(t *testing.T) {
	b, err := Open(t.TempDir(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	all, some := driver.Index{Name: "all", Parts: 1}, driver.Index{Name: "some", Parts: 1}
	s, err := b.Open(t.Context(), driver.Spec{Name: "Books", Indexes: []driver.Index{all, some}, Keys: func(string, []byte) []driver.Key { return nil }})
	if err != nil {
		t.Fatal(err)
	}
	const records = 90
	one := [][]byte{[]byte("1")}
	for i := range records {
		w := driver.Write{UUID: fmt.Sprintf("n%02d", i), Revision: 1, Body: []byte("{}"), Keys: []driver.Key{{Index: "all", Parts: one}}}
		if i%3 != 0 || i > 60 {
			w.Keys = append(w.Keys, driver.Key{Index: "some", Parts: one})
		}
		if err := s.Put(t.Context(), w); err != nil {
			t.Fatal(err)
		}
	}
	for _, descending := range []bool{false, true} {
		q := driver.Query{Index: "all", Equal: one, Limit: records, Descending: descending}
		page, err := s.(driver.Intersecter).Intersect(t.Context(), q, []driver.KeyCondition{{Index: "some", Equal: [][][]byte{one}}}, 10*records)
		if want := 40 + records - 61; err != nil || len(page.Records) != want || page.Keys != records {
			t.Errorf("%d records, want %d; %d keys were compared, of %d records: %v", len(page.Records), want, page.Keys, records, err)
		}
	}
}
