package app

import "github.com/prometheus/client_golang/prometheus"

// metrics are those of a process.
type metrics struct {
	registry *prometheus.Registry // of what it has counted
	asked    *prometheus.Registry // of what backends and the bus are asked for
}

func newMetrics() *metrics {
	return &metrics{registry: prometheus.NewRegistry(), asked: prometheus.NewRegistry()}
}

// all gathers all metrics.
func (m *metrics) all() prometheus.Gatherer { return prometheus.Gatherers{m.registry, m.asked} }
