package workers

import (
	"context"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"belfry/internal/prom"
	"belfry/pkg/app/serving"
	"belfry/pkg/walk"
)

// Walks is the progress of all walks over existing objects, for the console and the metrics.
type Walks struct {
	Metrics prometheus.Registerer
	Of      []func() []walk.Status // parts, which start before
}

// Part returns the function that starts it.
func (w *Walks) Part() serving.Part {
	return serving.Part{Name: "the progress of walks", Start: func(context.Context, *serving.Generation) error {
		w.Metrics.MustRegister(w.collector())
		return nil
	}}
}

// Status returns the progress of all data that is derived from existing objects.
func (w *Walks) Status() (all []walk.Status) {
	for _, of := range w.Of {
		all = slices.Concat(all, of())
	}
	return all
}

var (
	ofWalk           = []string{"kind", "name"}
	walkCompleteDesc = prometheus.NewDesc("belfry_walk_complete",
		"1 once what a walk derives from existing objects is there for all of them, else 0.", ofWalk, nil)
	walkDoneDesc = prometheus.NewDesc("belfry_walk_done_objects",
		"Objects that a walk in progress has done, or the last one has.", ofWalk, nil)
	walkTotalDesc = prometheus.NewDesc("belfry_walk_objects", "Objects when the walk began, approximately.", ofWalk,
		nil)
	walkFailedDesc = prometheus.NewDesc("belfry_walk_failed_objects", "Objects for which the walk failed.", ofWalk, nil)
)

func (w *Walks) collector() prometheus.Collector {
	return prom.Computed(func(_ context.Context, values prom.Values) {
		for _, s := range w.Status() {
			kind := string(s.Kind)
			values.Gauge(walkCompleteDesc, prom.OneIf(s.Filled && !s.Repairing), kind, s.Name)
			values.Gauge(walkDoneDesc, float64(s.Done), kind, s.Name)
			values.Gauge(walkTotalDesc, float64(s.Total), kind, s.Name)
			values.Gauge(walkFailedDesc, float64(s.Failed), kind, s.Name)
		}
	}, walkCompleteDesc, walkDoneDesc, walkTotalDesc, walkFailedDesc)
}
