package filestore

import (
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"belfry/pkg/store/driver"
)

// TestPurgeKeepsATombstoneThatWasReplaced has an object created and deleted again after Purge
// found its tombstone: the new tombstone has a pending event and must be kept.
func TestPurgeKeepsATombstoneThatWasReplaced(t *testing.T) {
	b, s := openStore(t, "/data", vfs.NewMem())
	defer b.Close() //nolint:errcheck // in memory
	for _, w := range []driver.Write{
		{UUID: "a", Revision: 1},
		{UUID: "a", Revision: 2, Body: []byte("{}")},
		{UUID: "a", IfRevision: 2, Revision: 3, Event: driver.Event{ID: "deleted"}},
	} {
		if err := s.Put(t.Context(), w); err != nil {
			t.Fatal(err)
		}
	}
	removed, err := s.removeTombstones(t.Context(), map[string]tombstone{"a": {uuid: "a", revision: 1}})
	if err != nil || removed != 0 {
		t.Errorf("%d tombstones were removed, error %v; want none", removed, err)
	}
	if r, found, err := s.Get(t.Context(), "a"); err != nil || !found || r.Revision != 3 {
		t.Errorf("the tombstone is at revision %d, found %v, error %v; want 3", r.Revision, found, err)
	}
}
