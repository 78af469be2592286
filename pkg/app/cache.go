package app

import (
	"github.com/prometheus/client_golang/prometheus"

	"belfry/pkg/store/filestore"
)

var (
	cacheLabels     = []string{"backend"}
	cacheBytesDesc  = prometheus.NewDesc("belfry_cache_bytes", "Bytes in the cache of a backend of type file.", cacheLabels, nil)
	cacheHitsDesc   = prometheus.NewDesc("belfry_cache_hits_total", "Blocks that a backend of type file found in its cache.", cacheLabels, nil)
	cacheMissesDesc = prometheus.NewDesc("belfry_cache_misses_total", "Blocks that a backend of type file read from its folder.", cacheLabels, nil)
)

// collectCaches adds the metrics of the caches of backends of type file.
func (a *App) collectCaches(ch chan<- prometheus.Metric) {
	for name, b := range a.now().backends {
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
