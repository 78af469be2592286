package natsapi

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"belfry/internal/prom"
)

// metrics count requests by store, operation and status.
type metrics struct {
	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
}

func newMetrics(registry prometheus.Registerer) *metrics {
	m := &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "belfry_bus_requests_total",
			Help: "Completed requests over the bus, by store, operation and status.",
		}, []string{"store", "op", "status"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "belfry_bus_request_duration_seconds",
			Help:    "Time from a request's arrival over the bus to its reply, by store and operation.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30},
		}, []string{"store", "op"}),
	}
	m.requests, m.duration = prom.Register(registry, m.requests), prom.Register(registry, m.duration)
	return m
}

// count counts a reply; status 0 is success.
func (m *metrics) count(store, op string, status int, took time.Duration) {
	m.requests.WithLabelValues(store, op, strconv.Itoa(max(status, 200))).Inc()
	m.duration.WithLabelValues(store, op).Observe(took.Seconds())
}
