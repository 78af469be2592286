package serving

import (
	"github.com/prometheus/client_golang/prometheus"
)

// Metrics are those of a process.
type Metrics struct {
	Registry *prometheus.Registry // of what it has counted
	Asked    *prometheus.Registry // of what backends and the bus are asked for
}

func NewMetrics() *Metrics {
	return &Metrics{Registry: prometheus.NewRegistry(), Asked: prometheus.NewRegistry()}
}

// all gathers all metrics.
func (m *Metrics) All() prometheus.Gatherer { return prometheus.Gatherers{m.Registry, m.Asked} }
