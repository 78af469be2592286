// Package workers has the parts of a process that handle events: the built-in listeners for mappings, cascades, mails
// and contents, the filling of arrays over existing data, and the repair after missed events.
package workers

import (
	"context"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"belfry/internal/prom"
	"belfry/listeners/aggregate"
	"belfry/listeners/cascade"
	"belfry/listeners/copies"
	"belfry/listeners/mapping"
	"belfry/listeners/mapping/route"
	"belfry/pkg/api/applied"
	"belfry/pkg/app/part"
	"belfry/pkg/app/plan"
	"belfry/pkg/app/serving"
	"belfry/pkg/event"
	"belfry/pkg/listener"
	protocol "belfry/pkg/mapping"
	"belfry/pkg/store"
)

// Workers are the listeners of mappings and cascades.
type Workers struct {
	Runner
	Served  *serving.Current
	Roles   serving.Roles
	Metrics *serving.Metrics
	Copies  *CopyLag

	pace     *protocol.Pace
	overflow overflow
	onFull   func(m *store.Mapping, target string)
	mapper   *mapping.Worker
	copier   *copies.Worker
	counter  *aggregate.Worker
	onAbsent func(m *store.Mapping, property string)
	sharing  *route.Group
}

// Part returns the functions that start, reload and stop it.
func (w *Workers) Part() serving.Part {
	return serving.Part{Name: "the workers", Start: w.start, Reload: w.reload, Stop: w.stop}
}

// make makes the workers of a configuration, beside those that currently share targets.
func (w *Workers) make(g *serving.Generation, sharing *route.Group) {
	g.Sharing = sharing
	g.Mapper = mapping.NewWorker(g.Set, mapping.Options{OnFull: w.onFull, Sharing: sharing, Pace: w.pace})
	g.Copier = w.newCopier(g)
	g.Aggregator = aggregate.NewWorker(g.Set, aggregate.Options{OnAbsent: w.onAbsent, Sharing: sharing})
	g.Cascader = cascade.NewWorker(g.Set, cascade.Options{})
}

func (w *Workers) start(_ context.Context, first *serving.Generation) error {
	w.onFull, w.onAbsent, w.pace = w.countFull(), w.countAbsent(), protocol.NewPace(0)
	w.make(first, w.newSharing(first))
	w.mapper, w.copier, w.counter, w.sharing = first.Mapper, first.Copier, first.Aggregator, first.Sharing
	if w.sharing != nil {
		w.sharing.Start()
	}
	w.run(first, w.specs(first))
	w.Metrics.Asked.MustRegister(w.shared(), w.lag())
	return nil
}

// reload makes the workers of another configuration. Workers with other mappings share targets among themselves.
func (w *Workers) reload(ctx context.Context, before, next *serving.Generation) (part.Change, error) {
	sharing := before.Sharing
	another := w.sharingDefinition(before) != w.sharingDefinition(next)
	if another {
		sharing = w.newSharing(next)
	}
	w.make(next, sharing)
	change, err := w.change(ctx, before, next, w.specs(before), w.specs(next))
	if err != nil {
		return part.Change{}, err
	}
	listen := change.Apply
	change.Apply = func() {
		w.mapper, w.copier, w.counter, w.sharing = next.Mapper, next.Copier, next.Aggregator, sharing
		if another && sharing != nil {
			sharing.Start()
		}
		listen()
	}
	change.Settle = func(ctx context.Context) {
		former := before.Sharing
		if !another {
			former = nil
		}
		closeSharing(ctx, former, before.Mapper, before.Aggregator)
		before.Copier.Close()
	}
	return change, nil
}

func (w *Workers) stop(ctx context.Context) error {
	err := w.end(ctx)
	if w.mapper != nil {
		closeSharing(ctx, w.sharing, w.mapper, w.counter)
		w.copier.Close()
	}
	return err
}

// specs are the listeners of the roles of this process.
func (w *Workers) specs(g *serving.Generation) (mine []listener.Spec) {
	maps, copied, cascades := g.Plan.MappingSpec(), g.Plan.CopySpec(), g.Plan.CascadeSpec()
	aggregates := g.Plan.AggregateSpec()
	applyMaps := applied.Reporting(g.Bus.Conn(), mapping.Name, func(ctx context.Context, e *event.Envelope) error {
		now, done := w.Served.Use()
		defer done()
		return now.Mapper.Handle(ctx, e)
	})
	// A write of an array causes nothing.
	maps.Handler = func(ctx context.Context, e *listener.Event) error { return applyMaps(ctx, &e.Envelope, 0) }
	applyCopies := applied.Reporting(g.Bus.Conn(), copies.Name, func(ctx context.Context, e *event.Envelope) error {
		now, done := w.Served.Use()
		defer done()
		return now.Copier.Handle(ctx, e)
	})
	copied.Handler = w.Copies.follow(g.Copier, func(ctx context.Context, e *listener.Event) error {
		return g.Copier.HandOver(ctx, applyCopies(ctx, &e.Envelope, 0))
	})
	applyAggregates := applied.Reporting(g.Bus.Conn(), aggregate.Name,
		func(ctx context.Context, e *event.Envelope) error {
			now, done := w.Served.Use()
			defer done()
			return now.Aggregator.Handle(ctx, e)
		})
	aggregates.Handler = func(ctx context.Context, e *listener.Event) error {
		return applyAggregates(ctx, &e.Envelope, 0)
	}
	applyCascades := applied.Reporting(g.Bus.Conn(), cascade.Name, func(ctx context.Context, e *event.Envelope) error {
		now, done := w.Served.Use()
		defer done()
		return now.Cascader.Handle(ctx, e)
	})
	cascades.Handler = func(ctx context.Context, e *listener.Event) error {
		return applyCascades(ctx, &e.Envelope, e.Attempt)
	}
	for _, spec := range []listener.Spec{maps, copied, aggregates, cascades} {
		if w.Roles.Has(plan.RoleOf(spec.Name)) {
			mine = append(mine, spec)
		}
	}
	return mine
}

// countFull counts objects that were not added to a mapped array at its limit.
func (w *Workers) countFull() func(*store.Mapping, string) {
	full := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "belfry_mapping_overflow_total",
		Help: "Objects that were not added to a mapped array because it is at its limit or the entry is too large.",
	}, []string{"source", "target", "array"})
	w.Metrics.Registry.MustRegister(full)
	return func(m *store.Mapping, target string) {
		full.WithLabelValues(m.Source, m.Target, m.Array).Inc()
		w.overflow.add(m.Source, m.Target, m.Array)
		w.Log.Debug("a mapped array is full", "store", m.Target, "uuid", target, "array", m.Array, "limit", m.Limit)
	}
}

// countAbsent counts aggregates that were left out.
func (w *Workers) countAbsent() func(*store.Mapping, string) {
	absent := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "belfry_aggregate_absent_total",
		Help: "Times an aggregate was left out because its exact value has more than 34 digits, or depends on a " +
			"number or a text that is too long.",
	}, []string{"source", "target", "property"})
	w.Metrics.Registry.MustRegister(absent)
	return func(m *store.Mapping, property string) {
		absent.WithLabelValues(m.Source, m.Target, property).Inc()
	}
}

// overflow counts the objects that this process has not added to mapped arrays, by mapping.
type overflow struct {
	mu    sync.Mutex
	count map[[3]string]uint64
}

func (o *overflow) add(source, target, array string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.count == nil {
		o.count = map[[3]string]uint64{}
	}
	o.count[[3]string{source, target, array}]++
}

func (o *overflow) of(source, target, array string) uint64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.count[[3]string{source, target, array}]
}

// Overflow returns how many objects this process has not added to the arrays of a mapping.
func (w *Workers) Overflow(source, target, array string) uint64 {
	return w.overflow.of(source, target, array)
}

var lagDesc = prometheus.NewDesc("belfry_listener_pending", "Events that a listener has not yet acknowledged.",
	[]string{"listener"}, nil)

// lag are the metrics of the events that wait for the workers.
func (w *Workers) lag() prometheus.Collector {
	return prom.Computed(func(ctx context.Context, values prom.Values) {
		now := w.Served.Now()
		for _, spec := range now.Plan.WorkerSpecs() {
			if len(spec.Filters) == 0 || !w.Roles.Has(plan.RoleOf(spec.Name)) {
				continue // the permissions on the bus may not allow it
			}
			if pending, unacked, err := listener.Lag(ctx, now.Bus, spec.Name); err == nil {
				values.Gauge(lagDesc, float64(pending+unacked), spec.Name)
			}
		}
	}, lagDesc)
}
