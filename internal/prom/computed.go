package prom

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// scrapeTimeout is how long the values of a collector may take.
const scrapeTimeout = 2 * time.Second

// Values receives the values of a scrape.
type Values chan<- prometheus.Metric

// Gauge adds the value of a gauge.
func (v Values) Gauge(d *prometheus.Desc, value float64, labels ...string) {
	v <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
}

// Counter adds the value of a counter.
func (v Values) Counter(d *prometheus.Desc, value float64, labels ...string) {
	v <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, value, labels...)
}

// Computed returns a collector whose values are computed at each scrape. Those that can't be read before ctx ends are
// left out.
func Computed(compute func(ctx context.Context, values Values), descs ...*prometheus.Desc) prometheus.Collector {
	return &computed{compute, descs}
}

type computed struct {
	compute func(ctx context.Context, values Values)
	descs   []*prometheus.Desc
}

// Describe implements prometheus.Collector.
func (c *computed) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range c.descs {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c *computed) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
	defer cancel()
	c.compute(ctx, ch)
}

// OneIf is 1 for true, else 0.
func OneIf(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
