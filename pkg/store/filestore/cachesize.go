package filestore

import (
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
)

const (
	cachePart = 6       // of the folder, for which the cache has room
	cacheStep = 8 << 20 // bytes that are written before the size is set again
)

// growingCache is a cache that has room for a part of the folder, within bounds: a folder with little data takes little
// memory. One goroutine at a time uses it; any may read the size.
type growingCache struct {
	cache       *pebble.Cache
	least, most int64
	folder      func() int64 // bytes

	size    atomic.Int64 // for blocks
	release func()       // what keeps the rest of most free
	written int          // since the size was set
}

// newGrowingCache makes a cache that is as small as it may be. The memtables count toward its size.
func newGrowingCache(least, most, memTables int64) *growingCache {
	g := &growingCache{cache: pebble.NewCache(max(least, most) + memTables), least: least, most: max(least, most)}
	g.resize(least)
	return g
}

// resize changes the room for blocks.
func (g *growingCache) resize(size int64) {
	before := g.release
	g.size.Store(size)
	g.release = g.cache.Reserve(int(g.most - size))
	if before != nil {
		before()
	}
}

// wrote sets the size when much was written since it was set.
func (g *growingCache) wrote(bytes int) {
	if g.written += bytes; g.written >= cacheStep {
		g.fit()
	}
}

func (g *growingCache) fit() {
	g.written = 0
	if g.least == g.most {
		return
	}
	if size := min(max(g.least, g.folder()/cachePart), g.most); size != g.size.Load() {
		g.resize(size)
	}
}
