package app

import (
	"context"
	"maps"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"belfry/internal/prom"
	"belfry/listeners/sweep"
	"belfry/pkg/api/system"
	"belfry/pkg/app/examine"
	"belfry/pkg/app/part"
	"belfry/pkg/app/plan"
	"belfry/pkg/errs"
	"belfry/pkg/outbox"
)

// health is whether a process works, as probes ask.
type health struct {
	served       *current
	roles        roles
	metrics      *metrics
	lifetime     *lifetime
	missing      func() error    // why a built-in listener can't receive events
	shortcomings func() []string // what an operator should know about although everything works
}

// part is the part of a process.
func (h *health) part() servedPart {
	return servedPart{
		Name: "the checks of what the process depends on",
		Start: func(_ context.Context, first *generation) error {
			first.depends = h.dependencies(first)
			h.register()
			return nil
		},
		Reload: func(_ context.Context, _, next *generation) (part.Change, error) {
			next.depends = h.dependencies(next)
			return part.Change{}, nil
		},
	}
}

// dependencies returns what this process depends on.
func (h *health) dependencies(g *generation) []*dependency {
	var all []*dependency
	for _, name := range slices.Sorted(maps.Keys(g.backends)) {
		all = append(all, &dependency{kind: partBackend, name: name, detail: g.config.Backends[name].Type,
			failed: "backend " + name + " is unavailable", check: g.backends[name].Ping})
	}
	for _, name := range slices.Sorted(maps.Keys(g.storages)) {
		detail := "folder"
		if g.config.Binaries[name].S3 != nil {
			detail = "S3"
		}
		all = append(all, &dependency{kind: partBinaries, name: name, detail: detail,
			failed: "the storage of binaries." + name + " is unavailable", check: g.storages[name].Ping})
	}
	detail := "embedded"
	if len(g.config.Bus.URL) > 0 {
		detail = "external"
	}
	return append(all,
		&dependency{kind: partBus, detail: detail, check: g.bus.Ready},
		&dependency{kind: partOutbox, detail: "to the bus", check: func(context.Context) error { return outboxWorks(g.relay) }},
		&dependency{kind: partListeners, detail: "built in", check: func(context.Context) error { return h.missing() }},
	)
}

// outboxWorks returns an error while the bus accepts no events.
func outboxWorks(r *outbox.Relay) error {
	if r.Stats().Unavailable {
		return errs.New(errs.Unavailable, "the bus does not accept events; they stay in their records and will be retried")
	}
	return nil
}

// ready returns why this process is not ready, or what is degraded although it is.
//
// A front is ready as long as it can read and write objects: taken out of a load balancer for anything else, all
// fronts would be at once, since they share what is unavailable. Nobody sends requests to other processes, so these
// are ready if they can do all of their work.
func (h *health) ready(ctx context.Context) (degraded []string, err error) {
	if h.lifetime.stopping.Err() != nil {
		return nil, system.ErrStopping
	}
	return h.readyWith(h.states(ctx))
}

// states asks all that the process depends on, at once.
func (h *health) states(ctx context.Context) []dependencyState {
	return askAll(ctx, h.served.now().depends)
}

// readyWith is ready for the states of the parts.
func (h *health) readyWith(states []dependencyState) (degraded []string, err error) {
	served := false
	for _, s := range states {
		p, state := s.of, s.err
		switch {
		case state == nil:
			served = served || h.serves(p)
		case err == nil && h.requires(p):
			err = state
		}
		if state != nil {
			degraded = append(degraded, saysOf(state))
		}
	}
	if err != nil && (!served || !h.roles.has(plan.RoleFront)) {
		return nil, err
	}
	return append(degraded, h.shortcomings()...), nil
}

// serves reports whether a part alone lets a front serve something: a backend of stores that clients may use.
func (h *health) serves(p *dependency) bool {
	if p.kind != partBackend {
		return false
	}
	exposed := false
	for _, s := range h.served.now().config.Stores {
		if s.Expose != nil && s.Backend == p.name {
			return true
		}
		exposed = exposed || s.Expose != nil
	}
	return !exposed
}

// requires reports whether a process can't be ready without a part; a front can, as long as another one serves.
func (h *health) requires(p *dependency) bool {
	if h.roles.has(plan.RoleFront) {
		return h.serves(p)
	}
	return p.kind != partBinaries || h.roles.has(sweep.Name)
}

// unavailable returns an error if a backend, a storage or the bus is unavailable now.
func (h *health) unavailable(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, partTimeout)
	defer cancel()
	for _, p := range h.dependencies(h.served.now()) {
		if err := p.state(ctx); err != nil && p.kind != partListeners {
			return err
		}
	}
	return nil
}

var (
	readyDesc    = prometheus.NewDesc("belfry_ready", "1 while /readyz is 200.", nil, nil)
	partDesc     = prometheus.NewDesc("belfry_part_up", "1 while a part that the process depends on works: a backend, a storage of binaries, the bus, the outbox, the built-in listeners.", []string{"kind", "name"}, nil)
	busDesc      = prometheus.NewDesc("belfry_bus_up", "1 while events can be published.", nil, nil)
	buildDesc    = prometheus.NewDesc("belfry_build_info", "1, with the version of the process.", []string{"version"}, nil)
	diskFreeDesc = prometheus.NewDesc("belfry_disk_free_bytes", "Space that is free on the disk of a folder that belfry writes.", []string{"folder"}, nil)
	diskSizeDesc = prometheus.NewDesc("belfry_disk_size_bytes", "Size of the disk of a folder that belfry writes.", []string{"folder"}, nil)
)

// register adds the metrics of the process, of what it depends on, and of its machine.
func (h *health) register() {
	h.metrics.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	h.metrics.asked.MustRegister(prom.Computed(h.collect, readyDesc, partDesc, busDesc, buildDesc, diskFreeDesc, diskSizeDesc))
}

func (h *health) collect(ctx context.Context, values prom.Values) {
	states := h.states(ctx)
	for _, s := range states {
		up := prom.OneIf(s.err == nil)
		values.Gauge(partDesc, up, s.of.kind, s.of.name)
		if s.of.kind == partBus {
			values.Gauge(busDesc, up)
		}
	}
	_, err := h.readyWith(states)
	values.Gauge(readyDesc, prom.OneIf(err == nil && h.lifetime.stopping.Err() == nil))
	values.Gauge(buildDesc, 1, plan.Version())
	for _, at := range examine.WrittenFolders(h.served.now().config) {
		if free, size, known := examine.Space(examine.Existing(at.Folder)); known {
			values.Gauge(diskFreeDesc, float64(free), at.Name)
			values.Gauge(diskSizeDesc, float64(size), at.Name)
		}
	}
}
