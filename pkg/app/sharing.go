package app

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"belfry/listeners/mapping"
	"belfry/listeners/mapping/route"
	"belfry/pkg/app/plan"
)

// newSharing prepares the mapping worker to share targets with those of other processes, if there can be any. No reload
// changes mappings, so it lasts as long as the process.
func (a *serving) newSharing() {
	if !a.has(mapping.Name) || !a.plan.Shared() || len(a.plan.MappingSpec().Filters) == 0 {
		return
	}
	a.sharing = route.New(route.Options{
		Bus: a.bus, Logger: a.log, Definition: mapping.Definition(a.set), Silence: plan.WorkerAckWait, Run: a.runForAnother,
	})
}

func (a *App) startSharing() {
	if a.sharing != nil {
		a.sharing.Start()
	}
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

// stopMapping stops the mapping worker once no events wait for it.
func (a *App) stopMapping(ctx context.Context) error {
	if a.sharing != nil {
		ctx, cancel := context.WithTimeout(ctx, leaveTimeout)
		defer cancel()
		a.sharing.Leave(ctx)
		defer a.sharing.Close() // reports what is canceled
	}
	a.now().mapper.Close()
	return nil
}

var (
	sharingDesc   = prometheus.NewDesc("belfry_mapping_workers", "Processes whose mapping workers share targets, this one included.", nil, nil)
	forwardedDesc = prometheus.NewDesc("belfry_mapping_forwarded_total", "Rounds of events that this process has received, which the owner of the target has run.", nil, nil)
	fallbacksDesc = prometheus.NewDesc("belfry_mapping_fallbacks_total", "Rounds that the owner of the target was asked for and did not complete, so that this process ran them.", nil, nil)
	servedDesc    = prometheus.NewDesc("belfry_mapping_served_total", "Rounds that this process has run for others, as the owner of the target.", nil, nil)
)

// collectSharing adds the metrics of shared targets.
func (a *App) collectSharing(ch chan<- prometheus.Metric) {
	if a.sharing == nil {
		return
	}
	s := a.sharing.Stats()
	ch <- prometheus.MustNewConstMetric(sharingDesc, prometheus.GaugeValue, float64(s.Members))
	ch <- prometheus.MustNewConstMetric(forwardedDesc, prometheus.CounterValue, float64(s.Forwarded))
	ch <- prometheus.MustNewConstMetric(fallbacksDesc, prometheus.CounterValue, float64(s.Fallbacks))
	ch <- prometheus.MustNewConstMetric(servedDesc, prometheus.CounterValue, float64(s.Served))
}
