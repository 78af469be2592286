package app

import (
	"cmp"
	"math"
	"runtime/debug"
	"sync"

	"github.com/KimMachineGun/automemlimit/memlimit"
	"github.com/prometheus/client_golang/prometheus"

	"belfry/pkg/store/filestore"
)

// The default cache of a backend of type file is a part of the memory that the process may use, within bounds: what it
// holds stays in memory, beside all else that belfry needs.
const (
	cachePart = 8
	minCache  = 8 << 20
	maxCache  = 1 << 30
)

// cacheBytes is the size of the cache of a backend of type file that has this one configured.
func cacheBytes(configured int64) int64 { return cmp.Or(configured, defaultCache(Memory())) }

func defaultCache(memory uint64) int64 { return int64(min(max(memory/cachePart, minCache), maxCache)) }

// Memory returns how many bytes the process may use: GOMEMLIMIT, what its control group has, or all of the machine. It is read once.
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

var (
	cacheLabels     = []string{"backend"}
	cacheBytesDesc  = prometheus.NewDesc("belfry_cache_bytes", "Bytes in the cache of a backend of type file.", cacheLabels, nil)
	cacheHitsDesc   = prometheus.NewDesc("belfry_cache_hits_total", "Blocks that a backend of type file found in its cache.", cacheLabels, nil)
	cacheMissesDesc = prometheus.NewDesc("belfry_cache_misses_total", "Blocks that a backend of type file read from its folder.", cacheLabels, nil)
)

// collectCaches adds the metrics of the caches of backends of type file.
func (a *App) collectCaches(ch chan<- prometheus.Metric) {
	for name, b := range a.backends {
		files, ok := b.(*filestore.Backend)
		if !ok {
			continue
		}
		m := files.Metrics()
		ch <- prometheus.MustNewConstMetric(cacheBytesDesc, prometheus.GaugeValue, float64(m.CacheBytes), name)
		ch <- prometheus.MustNewConstMetric(cacheHitsDesc, prometheus.CounterValue, float64(m.CacheHits), name)
		ch <- prometheus.MustNewConstMetric(cacheMissesDesc, prometheus.CounterValue, float64(m.CacheMisses), name)
	}
}
