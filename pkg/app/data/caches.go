package data

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"belfry/internal/prom"
	"belfry/pkg/store/filestore"
)

var (
	cacheLabels     = []string{"backend"}
	cacheBytesDesc  = prometheus.NewDesc("belfry_cache_bytes", "Bytes in the cache of a backend of type file.", cacheLabels, nil)
	cacheHitsDesc   = prometheus.NewDesc("belfry_cache_hits_total", "Blocks that a backend of type file found in its cache.", cacheLabels, nil)
	cacheMissesDesc = prometheus.NewDesc("belfry_cache_misses_total", "Blocks that a backend of type file read from its folder.", cacheLabels, nil)
)

// caches are the metrics of the caches of backends of type file.
func (b *Backends) caches() prometheus.Collector {
	return prom.Computed(func(_ context.Context, values prom.Values) {
		for name, backend := range b.Served.Now().Backends {
			files, ok := backend.(*filestore.Backend)
			if !ok {
				continue
			}
			m := files.Metrics()
			values.Gauge(cacheBytesDesc, float64(m.CacheBytes), name)
			values.Counter(cacheHitsDesc, float64(m.CacheHits), name)
			values.Counter(cacheMissesDesc, float64(m.CacheMisses), name)
		}
	}, cacheBytesDesc, cacheHitsDesc, cacheMissesDesc)
}
