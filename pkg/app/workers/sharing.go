package workers

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"belfry/internal/prom"
	"belfry/listeners/mapping"
	"belfry/listeners/mapping/route"
	"belfry/pkg/app/plan"
	"belfry/pkg/app/serving"
	"belfry/pkg/errs"
)

// newSharing prepares the workers of arrays and aggregates to share targets with those of other processes with the same
// mappings, if there can be any.
func (w *Workers) newSharing(g *serving.Generation) *route.Group {
	definition := w.sharingDefinition(g)
	if definition == "" {
		return nil
	}
	var group *route.Group
	group = route.New(route.Options{
		Bus: g.Bus, Logger: w.Log, Definition: definition, Silence: plan.WorkerAckWait,
		Run: func(r route.Round, done func(error)) { w.runForAnother(group, r, done) },
	})
	return group
}

// sharingDefinition identifies the mappings of a configuration whose targets are shared; "" without any.
func (w *Workers) sharingDefinition(g *serving.Generation) string {
	if !w.Roles.Has(mapping.Name) || !g.Plan.Shared() ||
		len(g.Plan.MappingSpec().Filters)+len(g.Plan.AggregateSpec().Filters) == 0 {
		return ""
	}
	return mapping.Definition(g.Set)
}

// runForAnother runs a round that another process requests from a group. A round names its mapping by its position in
// the group's definition. If this process serves other mappings, the requesting process runs the round itself.
func (w *Workers) runForAnother(group *route.Group, r route.Round, done func(error)) {
	now, release := w.Served.Use()
	if now.Sharing != group {
		release()
		done(errs.New(errs.Unavailable, "this process serves other mappings than those of the round"))
		return
	}
	run := now.Mapper.Run
	if r.Mapping >= len(now.Set.Mappings()) { // the mappings that aggregate are after these
		run = now.Aggregator.Run
	}
	run(r, func(err error) {
		release()
		done(err)
	})
}

// leaveTimeout is how long a stop waits for rounds that run for other processes. The other processes run the canceled
// rounds themselves.
const leaveTimeout = 2 * time.Second

// closeSharing ends workers once no events wait for them, and leaves the group with which they share targets. Rounds
// that run for other processes complete, or those processes run them.
func closeSharing(ctx context.Context, g *route.Group, workers ...interface{ Close() }) {
	if g != nil {
		ctx, cancel := context.WithTimeout(ctx, leaveTimeout)
		defer cancel()
		g.Leave(ctx)
		defer g.Close() // reports canceled rounds
	}
	for _, w := range workers {
		w.Close()
	}
}

var (
	sharingDesc = prometheus.NewDesc("belfry_mapping_workers",
		"Processes whose mapping workers share targets, this one included.", nil, nil)
	forwardedDesc = prometheus.NewDesc("belfry_mapping_forwarded_total",
		"Rounds of events that this process has received, which the owner of the target has run.", nil, nil)
	fallbacksDesc = prometheus.NewDesc("belfry_mapping_fallbacks_total",
		"Rounds that the owner of the target was asked for and did not complete, so that this process ran them.", nil,
		nil)
	servedDesc = prometheus.NewDesc("belfry_mapping_served_total",
		"Rounds that this process has run for others, as the owner of the target.", nil, nil)
)

// shared are the metrics of shared targets.
func (w *Workers) shared() prometheus.Collector {
	return prom.Computed(func(_ context.Context, values prom.Values) {
		sharing := w.Served.Now().Sharing
		if sharing == nil {
			return
		}
		s := sharing.Stats()
		values.Gauge(sharingDesc, float64(s.Members))
		values.Counter(forwardedDesc, float64(s.Forwarded))
		values.Counter(fallbacksDesc, float64(s.Fallbacks))
		values.Counter(servedDesc, float64(s.Served))
	}, sharingDesc, forwardedDesc, fallbacksDesc, servedDesc)
}
