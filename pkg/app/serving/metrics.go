package serving

import (
	"github.com/prometheus/client_golang/prometheus"
)

// Metrics are those of a process. Each part registers its own.
type Metrics struct {
	Registry *prometheus.Registry // of what it counts
	Asked    *prometheus.Registry // of values that are computed at each scrape, for which backends and the bus may be asked
}

// NewMetrics returns metrics without any.
func NewMetrics() *Metrics {
	return &Metrics{Registry: prometheus.NewRegistry(), Asked: prometheus.NewRegistry()}
}

// All gathers all metrics.
func (m *Metrics) All() prometheus.Gatherer { return prometheus.Gatherers{m.Registry, m.Asked} }
