package workers

import (
	"context"
	"log/slog"
	"slices"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"belfry/config"
	"belfry/internal/prom"
	"belfry/listeners/mapping"
	"belfry/pkg/app/open"
	"belfry/pkg/app/part"
	"belfry/pkg/app/plan"
	"belfry/pkg/app/serving"
	"belfry/pkg/listener"
	"belfry/pkg/mapping/fill"
	"belfry/pkg/walk"
)

// Filling fills the arrays of mappings that were added or changed over existing data. In a process without the role
// mapping, it only records the configuration that the process serves.
type Filling struct {
	Roles   serving.Roles
	Log     *slog.Logger
	Metrics prometheus.Registerer
	Rate    *walk.Rate // of all walks of the process

	filler atomic.Pointer[fill.Filler] // nil until it is started
	former atomic.Int64                // targets that were filled for earlier configurations
}

// Part returns the functions that start, reload and stop it.
func (f *Filling) Part() serving.Part {
	return serving.Part{Name: "the filling of arrays", Start: f.start, Reload: f.reload,
		Stop: func(context.Context) error {
			if filler := f.filler.Load(); filler != nil {
				filler.Close()
			}
			return nil
		}}
}

func (f *Filling) start(ctx context.Context, first *serving.Generation) error {
	f.Rate.Set(first.Config.FillRate)
	filler, err := fill.Start(ctx, f.options(first))
	if err == nil {
		f.filler.Store(filler)
		f.Metrics.MustRegister(f.collector())
	}
	return err
}

func (f *Filling) options(g *serving.Generation) fill.Options {
	return fill.Options{
		Works: fill.Derived(g.Set, config.Internal), Store: g.Set.Store(config.PositionStore), Logger: f.Log,
		Alone: !g.Plan.Shared(),
		Fills: f.Roles.Has(mapping.Name), Prepare: func(ctx context.Context) error { return f.prepare(ctx, g) },
		Rate: f.Rate,
	}
}

// reload fills according to another configuration.
func (f *Filling) reload(ctx context.Context, _, next *serving.Generation) (part.Change, error) {
	before := f.filler.Load()
	filler, change, err := open.Refill(ctx, before, f.options(next))
	if err != nil {
		return part.Change{}, err
	}
	return change.Before(func() {
		f.Rate.Set(next.Config.FillRate)
		f.former.Add(before.Targets())
		f.filler.Store(filler)
	}), nil
}

// prepare makes the consumers of the workers receive the events of all mappings and cascades.
func (f *Filling) prepare(ctx context.Context, g *serving.Generation) error {
	for _, spec := range g.Plan.WorkerSpecs() {
		if len(spec.Filters) == 0 || !f.Roles.Has(plan.RoleOf(spec.Name)) {
			continue // the permissions on the bus may not allow it
		}
		if err := listener.Update(ctx, g.Bus, spec); err != nil {
			return err
		}
	}
	return nil
}

// Again repeats all work that depends on events, after a loss of events; see fill.Filler.
func (f *Filling) Again(ctx context.Context, loss string) error {
	return f.filler.Load().Again(ctx, loss)
}

// merged returns the status of arrays and computed properties, with one status for each mapping. A mapping is filled
// once the targets that are named by integers are filled, too. Other upgrades from a previous release have no status.
func merged(all []walk.Status) (out []walk.Status) {
	for _, s := range all {
		if !slices.Contains([]walk.Kind{walk.Mapping, walk.Computed, walk.Copies, walk.Aggregates}, s.Kind) {
			continue
		}
		for _, n := range all {
			if n.Kind == walk.Upgrade && n.Source != "" && n.Source == s.Source && n.Store == s.Store &&
				n.Array == s.Array {
				s.Filled, s.Waiting = s.Filled && n.Filled, s.Waiting || n.Waiting
				s.Failed += n.Failed
			}
		}
		out = append(out, s)
	}
	return out
}

// Walks returns the status of all work of this part.
func (f *Filling) Walks() []walk.Status { return f.filler.Load().Status() }

// Removed returns the mappings that the configuration no longer has, but whose copies objects still have.
func (f *Filling) Removed() []string { return f.filler.Load().Removed() }

// Status returns the status of the arrays of mappings and of computed fields.
func (f *Filling) Status() []walk.Status { return merged(f.Walks()) }

var (
	filledDesc = prometheus.NewDesc("belfry_mapping_filled",
		"1 once the arrays of a mapping are filled from the objects that there were before it.",
		[]string{"source", "target", "array"}, nil)
	computedDesc = prometheus.NewDesc("belfry_computed_filled",
		"1 once the computed properties of a store are computed for all objects.", []string{"store"}, nil)
	copiesDesc = prometheus.NewDesc("belfry_copies_filled",
		"1 once all objects of a store have their copies of referenced objects.", []string{"store"}, nil)
	fillsDesc = prometheus.NewDesc("belfry_mapping_fill_targets_total",
		"Arrays that this process has filled from objects that there were before a mapping.", nil, nil)
)

// collector are the metrics of filling.
func (f *Filling) collector() prometheus.Collector {
	return prom.Computed(func(_ context.Context, values prom.Values) {
		for _, s := range f.Status() {
			switch s.Kind {
			case walk.Computed:
				values.Gauge(computedDesc, prom.OneIf(s.Filled), s.Store)
				continue
			case walk.Copies:
				values.Gauge(copiesDesc, prom.OneIf(s.Filled), s.Store)
				continue
			}
			values.Gauge(filledDesc, prom.OneIf(s.Filled), s.Source, s.Store, s.Array)
		}
		values.Counter(fillsDesc, float64(f.former.Load()+f.filler.Load().Targets()))
	}, filledDesc, computedDesc, copiesDesc, fillsDesc)
}
