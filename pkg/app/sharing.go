package app

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"belfry/listeners/mapping"
	"belfry/listeners/mapping/route"
	"belfry/pkg/app/plan"
)

// newSharing prepares the mapping worker to share targets with those of other processes that have the same mappings, if there can be any.
func (a *App) newSharing(g *serving) *route.Group {
	definition := sharingDefinition(g)
	if definition == "" {
		return nil
	}
	return route.New(route.Options{
		Bus: a.bus, Logger: a.log, Definition: definition, Silence: plan.WorkerAckWait, Run: a.runForAnother,
	})
}

// sharingDefinition identifies the mappings of a configuration whose targets are shared; "" if none are.
func sharingDefinition(g *serving) string {
	if !g.has(mapping.Name) || !g.plan.Shared() || len(g.plan.MappingSpec().Filters) == 0 {
		return ""
	}
	return mapping.Definition(g.set)
}

// runForAnother runs a round that another process asks for, with what is served now.
func (a *App) runForAnother(r route.Round, done func(error)) {
	now, release := a.use()
	now.mapper.Run(r, func(err error) {
		release()
		done(err)
	})
}

// leaveTimeout is how long a stop waits for rounds that run for other processes. These run what is canceled then.
const leaveTimeout = 2 * time.Second

// closeMapper ends a mapping worker once no events wait for it, and leaves the group with which it shares targets: rounds that run for
// other processes end, or these run them.
func closeMapper(ctx context.Context, w *mapping.Worker, g *route.Group) {
	if g != nil {
		ctx, cancel := context.WithTimeout(ctx, leaveTimeout)
		defer cancel()
		g.Leave(ctx)
		defer g.Close() // reports what is canceled
	}
	w.Close()
}

var (
	sharingDesc   = prometheus.NewDesc("belfry_mapping_workers", "Processes whose mapping workers share targets, this one included.", nil, nil)
	forwardedDesc = prometheus.NewDesc("belfry_mapping_forwarded_total", "Rounds of events that this process has received, which the owner of the target has run.", nil, nil)
	fallbacksDesc = prometheus.NewDesc("belfry_mapping_fallbacks_total", "Rounds that the owner of the target was asked for and did not complete, so that this process ran them.", nil, nil)
	servedDesc    = prometheus.NewDesc("belfry_mapping_served_total", "Rounds that this process has run for others, as the owner of the target.", nil, nil)
)

// collectSharing adds the metrics of shared targets.
func (a *App) collectSharing(ch chan<- prometheus.Metric) {
	sharing := a.now().sharing
	if sharing == nil {
		return
	}
	s := sharing.Stats()
	ch <- prometheus.MustNewConstMetric(sharingDesc, prometheus.GaugeValue, float64(s.Members))
	ch <- prometheus.MustNewConstMetric(forwardedDesc, prometheus.CounterValue, float64(s.Forwarded))
	ch <- prometheus.MustNewConstMetric(fallbacksDesc, prometheus.CounterValue, float64(s.Fallbacks))
	ch <- prometheus.MustNewConstMetric(servedDesc, prometheus.CounterValue, float64(s.Served))
}
