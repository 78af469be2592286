package filestore

import (
	"crypto/rand"
	"fmt"
	"testing"

	"belfry/pkg/store/driver"
)

func TestTheCacheGrowsWithTheFolder(t *testing.T) {
	const mib = 1 << 20
	folder := int64(0)
	g := newGrowingCache(24*mib, 100*mib, 16*mib)
	defer g.cache.Unref()
	g.folder = func() int64 { return folder }
	for _, c := range []struct{ folder, want int64 }{
		{0, 24}, {100, 24}, {300, 50}, {6000, 100}, {240, 40}, {0, 24},
	} {
		folder = c.folder * mib
		g.wrote(cacheStep - 1)
		before := g.size.Load()
		g.wrote(1)
		if g.size.Load() != c.want*mib {
			t.Errorf("with %d MiB in the folder: %d MiB, then %d, want %d", c.folder, before/mib, g.size.Load()/mib, c.want)
		}
	}
	if g.written != 0 {
		t.Errorf("%d bytes are left from before the size was set", g.written)
	}
}

func TestACacheOfOneSizeStaysAsItIs(t *testing.T) {
	g := newGrowingCache(24<<20, 0, 16<<20)
	defer g.cache.Unref()
	g.folder = func() int64 { panic("the folder does not matter") }
	g.wrote(10 * cacheStep)
	if g.size.Load() != 24<<20 || g.cache.MaxSize() != 40<<20 {
		t.Errorf("%d bytes for blocks, %d with memtables", g.size.Load(), g.cache.MaxSize())
	}
}

// A backend gives its cache the size that its folder has, while it is written and when it is opened again.
func TestABackendSetsTheSizeOfItsCache(t *testing.T) {
	const least, most = 1 << 20, 64 << 20
	folder := t.TempDir()
	for round := range 2 {
		b, err := Open(folder, Options{MemTableBytes: 1 << 20, CacheBytes: least, CacheMost: most})
		if err != nil {
			t.Fatal(err)
		}
		s, err := b.Open(t.Context(), driver.Spec{Name: "Books"})
		if err != nil {
			t.Fatal(err)
		}
		for n := 0; n < 200 && round == 0; n++ {
			noise := make([]byte, 100<<10)
			_, _ = rand.Read(noise)
			body := fmt.Appendf(nil, `{"text":"%x"}`, noise)
			if err := s.Put(t.Context(), driver.Write{UUID: fmt.Sprint(n), Revision: 1, Body: body}); err != nil {
				t.Fatal(err)
			}
		}
		if n := b.Metrics().CacheMost; n <= least || n > most {
			t.Errorf("in round %d the cache has room for %d bytes", round, n)
		}
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
