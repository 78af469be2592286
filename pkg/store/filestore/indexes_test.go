package filestore

import (
	"fmt"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"belfry/pkg/store/driver"
)

// openOnline opens the store of these tests beside its other handles.
func openOnline(t *testing.T, b *Backend, indexes ...driver.Index) *store {
	t.Helper()
	s, err := b.Open(t.Context(), driver.Spec{Name: "Books", Indexes: indexes, Keys: keysOf, Online: true})
	if err != nil {
		t.Fatal(err)
	}
	return s.(*store)
}

func closeBackend(t *testing.T, b *Backend) {
	t.Helper()
	if err := b.Close(); err != nil {
		t.Error(err)
	}
}

// Whoever has reindexed records continues after them, even if it has noted that elsewhere and the power fails here.
func TestReindexedKeysSurviveAPowerFailure(t *testing.T) {
	fs := vfs.NewCrashableMem()
	b, err := Open("/data", Options{FS: fs})
	if err != nil {
		t.Fatal(err)
	}
	defer closeBackend(t, b)
	plain := openOnline(t, b)
	var uuids []string
	for i := range uint64(50) {
		w := writeOf(fmt.Sprint("n", i), "ann writes", 0)
		w.Keys = nil
		if err := plain.Put(t.Context(), w); err != nil {
			t.Fatal(err)
		}
		uuids = append(uuids, w.UUID)
	}
	if err := openOnline(t, b, byWriter).Reindex(t.Context(), uuids); err != nil {
		t.Fatal(err)
	}
	after := fs.CrashClone(vfs.CrashCloneCfg{})
	b2, err := Open("/data", Options{FS: after})
	if err != nil {
		t.Fatal(err)
	}
	defer closeBackend(t, b2)
	s := openOnline(t, b2, byWriter)
	builds, err := s.Building(t.Context())
	if err != nil || len(builds) != 1 {
		t.Fatalf("%v, %v", builds, err)
	}
	if err := s.Complete(t.Context(), builds); err != nil {
		t.Fatal(err)
	}
	page, err := s.Query(t.Context(), driver.Query{Index: "writer", Limit: 1000})
	if err != nil || len(page.Records) != len(uuids) {
		t.Errorf("the index has %d records, error %v; want %d", len(page.Records), err, len(uuids))
	}
}

// The entries of an index that is released are removed, and what comes later gets another number.
func TestReleasedIndexesLeaveNothing(t *testing.T) {
	b, s := openStore(t, t.TempDir(), vfs.Default)
	defer closeBackend(t, b)
	w := writeOf("a", "ann writes", 0)
	if err := s.Put(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	entries := func() (n int) {
		t.Helper()
		it, err := b.db.NewIter(prefixBounds(appendPrefix(nil, s.id, kindIndex)))
		if err != nil {
			t.Fatal(err)
		}
		for ok := it.First(); ok; ok = it.Next() {
			n++
		}
		if err := it.Close(); err != nil {
			t.Fatal(err)
		}
		return n
	}
	other := openOnline(t, b)
	if err := other.Put(t.Context(), writeOf("b", "bob writes", 0)); err == nil {
		t.Error("a handle without the index has written a key of it")
	}
	if n := entries(); n != 1 {
		t.Errorf("there are %d entries, want that of the former handle", n)
	}
	if err := other.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := entries(); n != 0 {
		t.Errorf("%d entries are left", n)
	}
	again := openOnline(t, b, byWriter)
	if again.own[0].ID == s.own[0].ID {
		t.Error("the index has the number of the released one")
	}
	if err := driver.BuildIndexes(t.Context(), again); err != nil {
		t.Fatal(err)
	}
	if n := entries(); n != 1 {
		t.Errorf("the index has %d entries", n)
	}
}

// Handles of one store share locks and counters.
func TestHandlesShareCounters(t *testing.T) {
	b, s := openStore(t, t.TempDir(), vfs.Default)
	defer closeBackend(t, b)
	other := openOnline(t, b, byWriter)
	for i, h := range []*store{s, other, s, other} {
		if err := h.Put(t.Context(), writeOf(fmt.Sprint("n", i), "ann writes", 0)); err != nil {
			t.Fatal(err)
		}
	}
	for _, h := range []*store{s, other} {
		if n, _, err := h.Count(t.Context()); n != 4 || err != nil {
			t.Errorf("it counts %d records, error %v", n, err)
		}
	}
}
