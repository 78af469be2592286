package app

import (
	"context"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"belfry/config"
	"belfry/listeners/mapping"
	"belfry/pkg/api/console"
	"belfry/pkg/app/part"
	"belfry/pkg/listener"
	"belfry/pkg/mapping/fill"
)

// fills fills what is derived from the objects that were there before the configuration said so, or, in a process without the
// role mapping, records by which configuration it serves.
type fills struct {
	app    *App
	former atomic.Int64 // targets that were filled for configurations before
}

func (f *fills) part() part.Part[*serving] {
	return part.Part[*serving]{
		Name: "the filling of arrays",
		Start: func(ctx context.Context, first *serving) (err error) {
			first.filler, err = fill.Start(ctx, f.options(first))
			return err
		},
		Reload: func(ctx context.Context, before, next *serving) (part.Change, error) {
			filler, change, err := refill(ctx, before.filler, f.options(next))
			next.filler = filler
			if err != nil {
				return part.Change{}, err
			}
			end := change.Retire
			change.Retire = func(ctx context.Context) {
				end(ctx)
				f.former.Add(before.filler.Targets())
			}
			return change, nil
		},
		Stop: func(context.Context) error {
			if filler := f.app.now().filler; filler != nil {
				filler.Close()
			}
			return nil
		},
	}
}

func (f *fills) options(g *serving) fill.Options {
	return fill.Options{
		Works: fill.Derived(g.set, config.Internal), Store: g.set.Store(config.PositionStore), Logger: g.log, Alone: !g.plan.Shared(),
		Fills: g.has(mapping.Name), Prepare: g.prepareFill, Rate: g.config.FillRate,
	}
}

// prepareFill has the consumer of the mapping worker receive the events of all mappings.
func (a *serving) prepareFill(ctx context.Context) error {
	spec := a.plan.MappingSpec()
	if len(spec.Filters) == 0 {
		return nil
	}
	_, err := listener.Setup(ctx, a.bus, spec, false)
	return err
}

// merged returns how far everything is, with one status for a mapping: it is filled once what whole numbers name is filled too. What else
// makes up for a release before has none.
func merged(all []fill.Status) (out []fill.Status) {
	for _, s := range all {
		if s.Upgrades {
			continue
		}
		for _, n := range all {
			if n.Upgrades && n.Source != "" && n.Source == s.Source && n.Target == s.Target && n.Array == s.Array {
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
		for _, s := range merged(a.now().filler.Status()) {
			if s.Source == source && s.Target == target && s.Array == array {
				return console.Fill{Known: true, Done: s.Filled, Waiting: s.Others, Targets: s.Targets, Total: s.Total, Failed: s.Failed}
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
	for _, s := range merged(a.now().filler.Status()) {
		if s.Source == "" {
			ch <- prometheus.MustNewConstMetric(computedDesc, prometheus.GaugeValue, oneIf(s.Filled), s.Target)
			continue
		}
		ch <- prometheus.MustNewConstMetric(filledDesc, prometheus.GaugeValue, oneIf(s.Filled), s.Source, s.Target, s.Array)
	}
	ch <- prometheus.MustNewConstMetric(fillsDesc, prometheus.CounterValue, float64(a.fills.former.Load()+a.now().filler.Targets()))
}
