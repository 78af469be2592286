package views

import (
	"math"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"belfry/pkg/api/console"
)

const (
	// historyInterval is the time between two samples of the metrics, and maxSamples the number of kept samples: those
	// of an hour and one before it.
	historyInterval = 10 * time.Second
	maxSamples      = int(time.Hour/historyInterval) + 1

	// maxBuckets is how many buckets of the histogram of latencies are read.
	maxBuckets = 32
)

// history keeps samples of the metrics of this process, of the last hour. Its size is bounded. It is safe for
// concurrent use.
type history struct {
	gather prometheus.Gatherer // of metrics that cost no request to a backend

	mu      sync.Mutex
	samples []sample // oldest first
}

// sample are the metrics at a time. Counters count from the start of the process.
type sample struct {
	at                time.Time
	requests, failed  float64
	published         float64
	memory            float64
	bounds, cumulated [maxBuckets]float64 // of requests other than streams, by their time in seconds
	buckets           int
	measured          float64 // requests in the histogram
}

// take takes a sample.
func (h *history) take(now time.Time, published uint64) {
	s := sample{at: now, published: float64(published)}
	families, _ := h.gather.Gather() // the readable metrics suffice
	for _, f := range families {
		for _, m := range f.GetMetric() {
			label := func(name string) string {
				for _, l := range m.GetLabel() {
					if l.GetName() == name {
						return l.GetValue()
					}
				}
				return ""
			}
			switch f.GetName() {
			case "belfry_http_requests_total":
				s.requests += m.GetCounter().GetValue()
				if strings.HasPrefix(label("status"), "5") {
					s.failed += m.GetCounter().GetValue()
				}
			case "belfry_http_request_duration_seconds":
				if label("route") == "/events" {
					continue // a stream lasts as long as its client stays
				}
				hist := m.GetHistogram()
				s.measured += float64(hist.GetSampleCount())
				for i, b := range hist.GetBucket() {
					if i < maxBuckets {
						s.bounds[i] = b.GetUpperBound()
						s.cumulated[i] += float64(b.GetCumulativeCount())
						s.buckets = max(s.buckets, i+1)
					}
				}
			case "process_resident_memory_bytes":
				s.memory = m.GetGauge().GetValue()
			}
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.samples) == maxSamples {
		copy(h.samples, h.samples[1:])
		h.samples = h.samples[:maxSamples-1]
	}
	h.samples = append(h.samples, s)
}

// charts returns the charts of the samples.
func (h *history) charts() []console.Chart {
	h.mu.Lock()
	defer h.mu.Unlock()
	rate := func(name string, of func(sample) float64) console.Series {
		return h.series(name, func(before, now sample) float64 {
			return (of(now) - of(before)) / now.at.Sub(before.at).Seconds()
		})
	}
	latency := func(name string, q float64) console.Series {
		return h.series(name, func(before, now sample) float64 { return 1000 * quantile(before, now, q) })
	}
	charts := []console.Chart{
		{ID: "requests", Title: "Requests", Unit: "a second", Series: []console.Series{
			rate("all", func(s sample) float64 { return s.requests }),
			rate("failed in belfry (5xx)", func(s sample) float64 { return s.failed }),
		}},
		{ID: "latency", Title: "Latency of requests", Unit: "ms",
			Series: []console.Series{latency("half are faster", 0.5), latency("99 of 100 are faster", 0.99)}},
		{ID: "published", Title: "Events published", Unit: "a second",
			Series: []console.Series{rate("published", func(s sample) float64 { return s.published })}},
	}
	if n := len(h.samples); n > 0 && h.samples[n-1].memory > 0 {
		charts = append(charts,
			console.Chart{ID: "memory", Title: "Memory of the process", Unit: "bytes", Series: []console.Series{
				h.series("resident", func(_, now sample) float64 { return now.memory }),
			}})
	}
	return charts
}

// series computes a value for each two consecutive samples.
func (h *history) series(name string, value func(before, now sample) float64) console.Series {
	s := console.Series{Name: name}
	for i := 1; i < len(h.samples); i++ {
		before, now := h.samples[i-1], h.samples[i]
		v := math.NaN()
		// After the clock was stepped, or the machine slept, a rate is meaningless.
		if d := now.at.Sub(before.at); d > 0 && d < 6*historyInterval {
			v = value(before, now)
		}
		s.Points = append(s.Points, console.Point{At: now.at, Value: v})
	}
	return s
}

// quantile returns the time in seconds in which the part q of the requests between two samples completed; NaN without
// requests. It is exact to the width of a bucket.
func quantile(before, now sample, q float64) float64 {
	total := now.measured - before.measured
	if total <= 0 {
		return math.NaN()
	}
	rank, below, least := q*total, 0.0, 0.0
	for i := range now.buckets {
		count := now.cumulated[i] - before.cumulated[i]
		if count >= rank && count > below {
			return least + (now.bounds[i]-least)*(rank-below)/(count-below)
		}
		below, least = count, now.bounds[i]
	}
	return least // longer than the last bucket
}
