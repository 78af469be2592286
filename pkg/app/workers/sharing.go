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

// newSharing prepares the mapping worker to share targets with the workers of other processes with the same mappings,
// if there can be any.
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
	if !w.Roles.Has(mapping.Name) || !g.Plan.Shared() || len(g.Plan.MappingSpec().Filters) == 0 {
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
	now.Mapper.Run(r, func(err error) {
		release()
		done(err)
	})
}

// leaveTimeout is how long a stop waits for rounds that run for other processes. The other processes run the canceled
// rounds themselves.
const leaveTimeout = 2 * time.Second

// closeMapper ends a mapping worker once no events wait for it, and leaves the group with which it shares targets.
// Rounds that run for other processes complete, or those processes run them.
func closeMapper(ctx context.Context, w *mapping.Worker, g *route.Group) {
	if g != nil {
		ctx, cancel := context.WithTimeout(ctx, leaveTimeout)
		defer cancel()
		g.Leave(ctx)
		defer g.Close() // reports canceled rounds
	}
	w.Close()
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
