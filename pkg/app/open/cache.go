package open

import (
	"cmp"
	"math"
	"runtime/debug"
	"sync"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

// The default cache of a backend of type file is a part of the memory that the process may use, within bounds. belfry
// needs the rest for everything else.
const (
	cachePart = 8
	minCache  = 8 << 20
	maxCache  = 1 << 30
)

// CacheBytes is the size of the cache of a backend of type file with this configured size.
func CacheBytes(configured int64) int64 { return cmp.Or(configured, DefaultCache(Memory())) }

// DefaultCache is the size of the cache for an amount of memory.
func DefaultCache(memory uint64) int64 { return int64(min(max(memory/cachePart, minCache), maxCache)) }

// Memory returns how many bytes the process may use: GOMEMLIMIT, the limit of its control group, or the memory of the
// machine. It is read once.
var Memory = sync.OnceValue(func() uint64 {
	all := uint64(math.MaxInt64)
	for _, limit := range []func() (uint64, error){goLimit, memlimit.FromCgroup, memlimit.FromSystem} {
		if n, err := limit(); err == nil && n > 0 {
			all = min(all, n)
		}
	}
	return all
})

func goLimit() (uint64, error) { return uint64(debug.SetMemoryLimit(-1)), nil }
