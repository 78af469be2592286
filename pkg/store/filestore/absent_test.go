package filestore

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"belfry/pkg/errs"
	"belfry/pkg/store/driver"
)

// lowest moves all data to the lowest level.
func lowest(t *testing.T, b *Backend) {
	t.Helper()
	if err := b.db.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := b.db.Compact(t.Context(), []byte{0}, []byte{0xff}, false); err != nil {
		t.Fatal(err)
	}
}

// randomUUID is one that no sequence of others is beside.
func randomUUID() string { return fmt.Sprintf("%016x%016x", rand.Uint64(), rand.Uint64()) }

// A create finds in each level whether its uuid is taken: in the memtable, in a table, and after a deletion.
func TestACreateFindsATakenUUIDInEachLevel(t *testing.T) {
	b, s := openStore(t, "/data", vfs.NewMem())
	defer closeBackend(t, b)
	create := func(uuid string, revision uint64) error {
		return s.Put(t.Context(), driver.Write{UUID: uuid, Revision: revision, Body: []byte(`{}`)})
	}
	var taken []string
	for i := range uint64(200) {
		taken = append(taken, randomUUID())
		if err := create(taken[i], 1); err != nil {
			t.Fatal(err)
		}
	}
	for _, level := range []struct {
		name string
		move func()
	}{
		{"memtable", func() {}},
		{"lowest level", func() { lowest(t, b) }},
	} {
		level.move()
		for _, uuid := range taken {
			if err := create(uuid, 2); !errors.Is(err, errs.Mismatch) {
				t.Fatalf("%s: %v, want Mismatch", level.name, err)
			}
		}
	}
	one := taken[0]
	if err := s.Put(t.Context(), driver.Write{UUID: one, IfRevision: 1, Revision: 5}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := create(one, 5); !errors.Is(err, errs.Mismatch) {
			t.Errorf("a create below its tombstone: %v, want Mismatch", err)
		}
		lowest(t, b)
	}
	if err := create(one, 6); err != nil {
		t.Errorf("a create above its tombstone: %v", err)
	}
}

// Filters say that a random uuid is free: no block of the records is read for it, as Get would.
func TestAFreeUUIDReadsNoBlocksOfRecords(t *testing.T) {
	b, err := Open("/data", Options{MemTableBytes: 256 << 10, CacheBytes: 128 << 10, FS: vfs.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	defer closeBackend(t, b)
	opened, err := b.Open(t.Context(), driver.Spec{Name: "Books"})
	if err != nil {
		t.Fatal(err)
	}
	s := opened.(*store)
	for range 3_000 { // several times the cache
		if err := s.Put(t.Context(), driver.Write{UUID: randomUUID(), Revision: 1, Body: benchBody}); err != nil {
			t.Fatal(err)
		}
	}
	lowest(t, b)
	const lookups = 500
	read := func(created bool) int64 {
		before := b.db.Metrics().BlockCache.Misses
		for range lookups {
			if p, err := s.current(randomUUID(), created); err != nil || p.live || p.deleted {
				t.Fatalf("%+v, %v", p, err)
			}
		}
		return b.db.Metrics().BlockCache.Misses - before
	}
	if with, without := read(true), read(false); with > lookups/10 || without < lookups/2 {
		t.Errorf("%d blocks were read with the filters, %d without, of %d lookups", with, without, lookups)
	}
}
