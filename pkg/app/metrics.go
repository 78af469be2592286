package app

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"belfry/pkg/listener"
	"belfry/pkg/listener/replay"
	"belfry/pkg/store"
)

// countFull counts objects that were not added to a mapped array at its limit.
func (a *App) countFull() func(*store.Mapping, string) {
	full := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "belfry_mapping_overflow_total",
		Help: "Objects that were not added to a mapped array because it is at its limit or the entry is too large.",
	}, []string{"source", "target", "array"})
	a.registry.MustRegister(full)
	return func(m *store.Mapping, target string) {
		full.WithLabelValues(m.Source, m.Target, m.Array).Inc()
		a.overflow.add(m.Source, m.Target, m.Array)
		a.log.Debug("a mapped array is full", "store", m.Target, "uuid", target, "array", m.Array, "limit", m.Limit)
	}
}

// watch registers the collectors.
func (a *App) watch() {
	a.registry.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	a.asked.MustRegister(&gauges{app: a})
}

// metrics are all metrics of the process.
func (a *App) metrics() prometheus.Gatherer { return prometheus.Gatherers{a.registry, a.asked} }

// gauges are computed at each scrape.
type gauges struct{ app *App }

var (
	objectsDesc = prometheus.NewDesc("belfry_objects", "Approximate number of objects in a store.", []string{"store"}, nil)
	pendingDesc = prometheus.NewDesc("belfry_events_pending", "Events in records that are not yet published.", []string{"store"}, nil)
	sentDesc    = prometheus.NewDesc("belfry_events_published_total", "Events published.", nil, nil)
	failedDesc  = prometheus.NewDesc("belfry_events_failures_total", "Failed attempts to publish.", nil, nil)
	stuckDesc   = prometheus.NewDesc("belfry_events_refused", "Events in records that the bus refuses for good, as of the last sweep.", nil, nil)
	busDesc     = prometheus.NewDesc("belfry_bus_up", "1 while events can be published.", nil, nil)
	lettersDesc = prometheus.NewDesc("belfry_dead_letters", "Events that a listener could not handle, and that nobody has dealt with yet.", []string{"listener"}, nil)
	lagDesc     = prometheus.NewDesc("belfry_listener_pending", "Events that a listener has not yet acknowledged.", []string{"listener"}, nil)
)

// Describe implements prometheus.Collector.
func (g *gauges) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{objectsDesc, pendingDesc, sentDesc, failedDesc, stuckDesc, busDesc, lagDesc, lettersDesc, missedDesc, countDesc, cacheBytesDesc, cacheHitsDesc, cacheMissesDesc, searchReadyDesc, searchObjectsDesc, searchBehindDesc, readyDesc, partDesc, busSettingsDesc, mailerDesc, buildDesc, diskFreeDesc, diskSizeDesc, expiryDesc, filledDesc, computedDesc, fillsDesc, sharingDesc, forwardedDesc, fallbacksDesc, servedDesc, backupTimeDesc, backupFailedDesc, backupDurationDesc, backupSizeDesc, backupProblemsDesc} {
		ch <- d
	}
}

// Collect implements prometheus.Collector. It leaves out values that can't be read.
func (g *gauges) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	a := g.app
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	a.collectParts(ctx, gauge) // first: counting may use up the time
	now := a.now()
	for name, s := range now.set.Stores() {
		if objects, pending, err := s.Count(ctx); err == nil {
			gauge(objectsDesc, float64(objects), name)
			gauge(pendingDesc, float64(pending), name)
		}
	}
	counts := a.relay.Stats()
	ch <- prometheus.MustNewConstMetric(sentDesc, prometheus.CounterValue, float64(counts.Published))
	ch <- prometheus.MustNewConstMetric(failedDesc, prometheus.CounterValue, float64(counts.Failures))
	gauge(stuckDesc, float64(counts.Stuck))
	gauge(busSettingsDesc, float64(len(a.busShortcomings())))
	a.collectMailers(gauge)
	a.collectMachine(gauge)
	a.collectMissed(gauge)
	a.collectCaches(ch)
	a.collectSearch(gauge)
	a.collectBackups(gauge)
	a.collectFill(ch)
	a.collectSharing(ch)
	for _, spec := range []listener.Spec{now.plan.MappingSpec(), now.plan.CascadeSpec()} {
		if len(spec.Filters) == 0 || !a.has(spec.Name) {
			continue // the permissions on the bus may not allow it
		}
		if pending, unacked, err := listener.Lag(ctx, a.bus, spec.Name); err == nil {
			gauge(lagDesc, float64(pending+unacked), spec.Name)
		}
	}
	a.collectLetters(ctx, gauge)
}

// collectLetters adds the numbers of dead letters. A listener without any has none, nor is there one where the permissions
// on the bus do not allow it.
func (a *App) collectLetters(ctx context.Context, gauge func(*prometheus.Desc, float64, ...string)) {
	_ = a.permitted(ctx, "count dead letters", "belfry dlq list", []string{deadInfo}, func(ctx context.Context) error {
		letters, err := replay.Letters(ctx, a.bus.JetStream())
		for listener, n := range letters {
			gauge(lettersDesc, float64(n), listener)
		}
		return err
	})
}
