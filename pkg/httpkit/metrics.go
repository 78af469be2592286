package httpkit

import (
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"belfry/internal/prom"
)

// metrics are the router's metrics. The labels of a route, and of a status, are resolved when it
// first occurs: counting a request needs no lookup, and the page of metrics has no histograms of
// routes that nobody requests, which would be most of it.
type metrics struct {
	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
	inFlight prometheus.Gauge
}

func newMetrics(registry *prometheus.Registry) *metrics {
	m := &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "belfry_http_requests_total",
			Help: "Completed HTTP requests, by route template, method and status.",
		}, []string{"route", "method", "status"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "belfry_http_request_duration_seconds",
			Help:    "Time from a request's headers to the end of its reply, by route template and method.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30},
		}, []string{"route", "method"}),
		inFlight: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "belfry_http_requests_in_flight",
			Help: "HTTP requests in flight.",
		}),
	}
	m.requests, m.duration, m.inFlight = prom.Register(registry, m.requests), prom.Register(registry, m.duration),
		prom.Register(registry, m.inFlight)
	return m
}

// route holds the metrics of one method of one path template.
type route struct {
	method, template string
	total            *prometheus.CounterVec
	duration         func() prometheus.Observer
	byStatus         [500]atomic.Pointer[prometheus.Counter] // from 100 on
}

func (m *metrics) route(method, template string) *route {
	return &route{
		method: method, template: template,
		total:    m.requests,
		duration: sync.OnceValue(func() prometheus.Observer { return m.duration.WithLabelValues(template, method) }),
	}
}

func (rt *route) count(status int, took time.Duration) {
	rt.duration().Observe(took.Seconds())
	slot := &rt.byStatus[min(max(status, 100), 599)-100]
	counter := slot.Load()
	if counter == nil {
		c := rt.total.WithLabelValues(rt.template, rt.method, strconv.Itoa(status))
		counter = &c
		slot.Store(counter)
	}
	(*counter).Inc()
}

// otherMethod is the label of all other methods: a client must not be able to
// create time series.
const otherMethod = "other"

// unmatched returns the routes that count requests without a route, by method.
func (m *metrics) unmatched() map[string]*route {
	routes := map[string]*route{}
	for _, method := range [...]string{
		http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch,
		http.MethodDelete, http.MethodOptions, otherMethod,
	} {
		routes[method] = m.route(method, "unmatched")
	}
	return routes
}
