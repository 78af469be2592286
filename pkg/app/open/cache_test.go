package open

import (
	"testing"
)

func TestTheDefaultCacheIsPartOfTheMemory(t *testing.T) {
	for memory, want := range map[uint64]int64{32 << 20: 8 << 20, 128 << 20: 16 << 20, 512 << 20: 64 << 20,
		4 << 30: 512 << 20, 64 << 30: 1 << 30, 1<<63 - 1: 1 << 30} {
		if got := DefaultCache(memory); got != want {
			t.Errorf("%d MiB of memory: a cache of %d MiB, not %d", memory>>20, got>>20, want>>20)
		}
	}
	if got := CacheBytes(3 << 20); got != 3<<20 {
		t.Errorf("the configured cache is %d bytes", got)
	}
	if n := Memory(); n < 64<<20 || n == 1<<63-1 {
		t.Errorf("the process may use %d bytes", n)
	}
}
