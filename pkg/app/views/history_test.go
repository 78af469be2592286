package views

import (
	"math"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"belfry/pkg/api/console"
)

// observed is the metrics of a router.
type observed struct {
	registry *prometheus.Registry
	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
}

func newObserved() *observed {
	o := &observed{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "belfry_http_requests_total"},
			[]string{"route", "status"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "belfry_http_request_duration_seconds",
			Buckets: []float64{.001, .01, .1, 1}}, []string{"route"}),
	}
	o.registry.MustRegister(o.requests, o.duration)
	return o
}

// lastOf returns the last values of the series of a chart.
func lastOf(t *testing.T, charts []console.Chart, id string) (values []float64) {
	t.Helper()
	for _, c := range charts {
		if c.ID != id {
			continue
		}
		for _, s := range c.Series {
			values = append(values, s.Points[len(s.Points)-1].Value)
		}
		return values
	}
	t.Fatalf("no chart %s", id)
	return nil
}

func near(got, want float64) bool { return math.Abs(got-want) < 1e-9 }

func TestTheHistoryHasRatesAndLatencies(t *testing.T) {
	o, now := newObserved(), time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	h := &history{gather: o.registry}
	o.requests.WithLabelValues("/books", "200").Add(1000) // before the first sample
	o.duration.WithLabelValues("/books").Observe(10)
	h.take(now, 500)
	o.requests.WithLabelValues("/books", "200").Add(90)
	o.requests.WithLabelValues("/books", "503").Add(10)
	for range 98 {
		o.duration.WithLabelValues("/books").Observe(0.005)
	}
	o.duration.WithLabelValues("/authors").Observe(0.5)
	o.duration.WithLabelValues("/authors").Observe(0.5)
	o.duration.WithLabelValues("/events").Observe(3600) // a stream
	h.take(now.Add(10*time.Second), 520)
	charts := h.charts()
	if v := lastOf(t, charts, "requests"); !near(v[0], 10) || !near(v[1], 1) {
		t.Errorf("requests %v", v)
	}
	if v := lastOf(t, charts, "published"); !near(v[0], 2) {
		t.Errorf("published %v", v)
	}
	// Half of a hundred are in the middle of the bucket up to 10 ms, and the 99th is in that of up to a second.
	if v := lastOf(t, charts, "latency"); v[0] < 1 || v[0] > 10 || v[1] < 100 || v[1] > 1000 {
		t.Errorf("latency %v", v)
	}
	h.take(now.Add(20*time.Second), 520)
	if v := lastOf(t, h.charts(), "latency"); !math.IsNaN(v[0]) {
		t.Errorf("latency of no requests: %v", v)
	}
	o.duration.WithLabelValues("/books").Observe(100)
	h.take(now.Add(30*time.Second), 520)
	if v := lastOf(t, h.charts(), "latency"); !near(v[1], 1000) {
		t.Errorf("latency beyond the last bucket: %v", v)
	}
	// After a pause, or a step of the clock back, a rate means nothing.
	for _, at := range []time.Duration{10 * time.Minute, 5 * time.Minute} {
		h.take(now.Add(at), 530)
		if v := lastOf(t, h.charts(), "published"); !math.IsNaN(v[0]) {
			t.Errorf("a rate after %s: %v", at, v)
		}
	}
}

func TestTheHistoryIsBounded(t *testing.T) {
	h := &history{gather: prometheus.NewRegistry()}
	now := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	for i := range 3 * maxSamples {
		h.take(now.Add(time.Duration(i)*historyInterval), uint64(i))
	}
	if len(h.samples) != maxSamples || cap(h.samples) > 2*maxSamples {
		t.Errorf("%d samples, capacity %d", len(h.samples), cap(h.samples))
	}
	points := h.charts()[0].Series[0].Points
	if first, last := points[0].At, points[len(points)-1].At; last.Sub(first) != time.Hour-historyInterval ||
		!last.Equal(now.Add(time.Duration(3*maxSamples-1)*historyInterval)) {
		t.Errorf("from %s to %s", first, last)
	}
}
