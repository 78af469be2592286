package app

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"belfry/config"
	"belfry/listeners/mapping"
	"belfry/pkg/api/console"
	"belfry/pkg/listener"
	"belfry/pkg/mapping/fill"
	"belfry/pkg/walk"
)

// startFill fills the arrays of mappings that were added or changed over existing data, or, in a process without the
// role mapping, records by which configuration it serves.
func (a *serving) startFill(ctx context.Context) error {
	f, err := fill.Start(ctx, fill.Options{
		Works: fill.Derived(a.set, config.Internal), Store: a.set.Store(config.PositionStore), Logger: a.log, Alone: !a.plan.shared(),
		Fills: a.has(mapping.Name), Prepare: a.prepareFill, Rate: a.walkRate,
	})
	if err != nil {
		return err
	}
	a.filler = f
	a.onStop("the filling of arrays", func(context.Context) error { f.Close(); return nil })
	return nil
}

// prepareFill has the consumer of the mapping worker receive the events of all mappings.
func (a *serving) prepareFill(ctx context.Context) error {
	spec := a.plan.mappingSpec()
	if len(spec.Filters) == 0 {
		return nil
	}
	_, err := listener.Setup(ctx, a.bus, spec, false)
	return err
}

// merged returns how far arrays and computed properties are, with one status for a mapping: it is filled once what whole numbers name is
// filled too. What else makes up for a release before has none.
func merged(all []fill.Status) (out []fill.Status) {
	for _, s := range all {
		if s.Kind != walk.Mapping && s.Kind != walk.Computed {
			continue
		}
		for _, n := range all {
			if n.Kind == walk.Upgrade && n.Source != "" && n.Source == s.Source && n.Target == s.Target && n.Array == s.Array {
				s.Filled, s.Waiting = s.Filled && n.Filled, s.Waiting || n.Waiting
				s.Failed += n.Failed
			}
		}
		out = append(out, s)
	}
	return out
}

// consoleFill returns how far the arrays of a mapping are filled, for the view Map.
func (a *App) consoleFill() func(source, target, array string) console.Fill {
	return func(source, target, array string) console.Fill {
		for _, s := range merged(a.filler.Status()) {
			if s.Source == source && s.Target == target && s.Array == array {
				return console.Fill{Known: true, Done: s.Filled, Repairing: s.Repairing, Waiting: s.Others, Targets: s.Done, Total: s.Total, Failed: s.Failed}
			}
		}
		return console.Fill{}
	}
}

var (
	filledDesc   = prometheus.NewDesc("belfry_mapping_filled", "1 once the arrays of a mapping are filled from the objects that there were before it.", []string{"source", "target", "array"}, nil)
	computedDesc = prometheus.NewDesc("belfry_computed_filled", "1 once the computed properties of a store are computed for all objects.", []string{"store"}, nil)
	fillsDesc    = prometheus.NewDesc("belfry_mapping_fill_targets_total", "Arrays that this process has filled from objects that there were before a mapping.", nil, nil)
)

// collectFill adds the metrics of filling.
func (a *App) collectFill(ch chan<- prometheus.Metric) {
	for _, s := range merged(a.filler.Status()) {
		if s.Kind == walk.Computed {
			ch <- prometheus.MustNewConstMetric(computedDesc, prometheus.GaugeValue, oneIf(s.Filled), s.Target)
			continue
		}
		ch <- prometheus.MustNewConstMetric(filledDesc, prometheus.GaugeValue, oneIf(s.Filled), s.Source, s.Target, s.Array)
	}
	ch <- prometheus.MustNewConstMetric(fillsDesc, prometheus.CounterValue, float64(a.filler.Targets()))
}
