package sse

import (
	"github.com/prometheus/client_golang/prometheus"
)

// metrics are what is counted.
type metrics struct {
	sent     prometheus.Counter
	dropped  *prometheus.CounterVec
	catching prometheus.Gauge
}

func newMetrics(h *Hub) *metrics {
	m := &metrics{
		sent: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "belfry_live_sent_total", Help: "Events sent to clients of /events.",
		}),
		dropped: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "belfry_live_dropped_total", Help: "Clients of /events that were let go, by reason.",
		}, []string{"reason"}),
		catching: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "belfry_live_catching_up", Help: "Clients of /events that read the log until they have caught up.",
		}),
	}
	for _, reason := range []string{slow, ended, stopped} {
		m.dropped.WithLabelValues(reason)
	}
	h.Registry.MustRegister(m.sent, m.dropped, m.catching,
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "belfry_live_clients", Help: "Clients of /events.",
		}, func() float64 { return float64(h.listening()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "belfry_live_lag", Help: "Events in the log that the clients of /events could not be sent yet.",
		}, func() float64 { return float64(h.tail.lag()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "belfry_live_window_bytes", Help: "What the events kept at hand for the clients of /events take, roughly.",
		}, func() float64 { return float64(h.tail.size()) }),
	)
	return m
}

// lag is how many events the log is known to hold behind what was read.
func (t *tail) lag() uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.end - min(t.end, t.position)
}

func (t *tail) size() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.bytes
}
