package sse

import (
	"github.com/prometheus/client_golang/prometheus"

	"belfry/internal/prom"
)

// metrics are the metrics of a Hub.
type metrics struct {
	sent     prometheus.Counter
	dropped  *prometheus.CounterVec
	catching prometheus.Gauge
	pages    prometheus.Counter

	ruleWaits prometheus.Counter
}

func newMetrics(h *Hub) *metrics {
	m := &metrics{
		sent: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "belfry_live_sent_total", Help: "Events sent to clients of /events.",
		}),
		dropped: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "belfry_live_dropped_total", Help: "Clients of /events that were disconnected, by reason.",
		}, []string{"reason"}),
		catching: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "belfry_live_catching_up", Help: "Clients of /events that read pages of the log to catch up.",
		}),
		pages: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "belfry_live_pages_total",
			Help: "Pages of the log that were read for clients of /events that catch up.",
		}),
	}
	m.ruleWaits = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "belfry_live_rule_waits_total",
		Help: "Times that a client of /events waited because the rules for it cost too much.",
	})
	r := h.opts.Registry
	m.sent, m.dropped, m.catching = prom.Register(r, m.sent), prom.Register(r, m.dropped), prom.Register(r, m.catching)
	m.pages, m.ruleWaits = prom.Register(r, m.pages), prom.Register(r, m.ruleWaits)
	for _, reason := range []string{slow, ended, stopped, retired, hiddenField} {
		m.dropped.WithLabelValues(reason)
	}
	for _, gauge := range h.gauges() {
		prom.Register(r, gauge) // the gauges of a serving hub stay registered until it retires
	}
	return m
}

// gauges are the state of a Hub.
func (h *Hub) gauges() []prometheus.Collector {
	return []prometheus.Collector{
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "belfry_live_clients", Help: "Clients of /events.",
		}, func() float64 { return float64(h.clientCount()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "belfry_live_lag", Help: "Events in the log that were not yet read for the clients of /events.",
		}, func() float64 { return float64(h.reader.lag()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "belfry_live_window_bytes",
			Help: "Approximate memory of the events that are held for clients of /events.",
		}, func() float64 { return float64(h.reader.size() + h.scan.size()) }),
	}
}

// showState makes the gauges show this hub instead of another one.
func (h *Hub) showState() {
	for _, gauge := range h.gauges() {
		prom.Replace(h.opts.Registry, gauge)
	}
}

// lag returns how many events of the log have not been read.
func (r *reader) lag() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.end - min(r.end, r.position)
}

func (r *reader) size() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.bytes
}
