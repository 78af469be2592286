package serving

import (
	"github.com/prometheus/client_golang/prometheus"
)

// Metrics are the metrics of a process. Each part registers its own.
type Metrics struct {
	Registry *prometheus.Registry // of counters
	Asked    *prometheus.Registry // of values that are computed at each scrape, perhaps by requests to backends and the bus
}

// NewMetrics returns empty metrics.
func NewMetrics() *Metrics {
	return &Metrics{Registry: prometheus.NewRegistry(), Asked: prometheus.NewRegistry()}
}

// All gathers all metrics.
func (m *Metrics) All() prometheus.Gatherer { return prometheus.Gatherers{m.Registry, m.Asked} }
