// Package health reports whether a process is ready, to probes, metrics and the doctor.
package health

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
	"belfry/pkg/app/probe"
	"belfry/pkg/app/serving"
	"belfry/pkg/errs"
	"belfry/pkg/outbox"
)

// Health is the state of a process for probes.
type Health struct {
	Served       *serving.Current
	Roles        serving.Roles
	Metrics      *serving.Metrics
	Lifetime     *serving.Lifetime
	Missing      func() error    // why a built-in listener can't receive events
	Shortcomings func() []string // problems that an operator should know even if everything works
}

// Part returns the functions that start, reload and stop it.
func (h *Health) Part() serving.Part {
	return serving.Part{
		Name: "the checks of what the process depends on",
		Start: func(_ context.Context, first *serving.Generation) error {
			first.Depends = h.dependencies(first)
			h.register()
			return nil
		},
		Reload: func(_ context.Context, _, next *serving.Generation) (part.Change, error) {
			next.Depends = h.dependencies(next)
			return part.Change{}, nil
		},
	}
}

// dependencies returns the dependencies of this process.
func (h *Health) dependencies(g *serving.Generation) []*probe.Dependency {
	var all []*probe.Dependency
	for _, name := range slices.Sorted(maps.Keys(g.Backends)) {
		all = append(all, &probe.Dependency{Kind: probe.Backend, Name: name, Detail: g.Config.Backends[name].Type,
			Failed: "backend " + name + " is unavailable", Check: g.Backends[name].Ping})
	}
	for _, name := range slices.Sorted(maps.Keys(g.Storages)) {
		detail := "folder"
		if g.Config.Binaries[name].S3 != nil {
			detail = "S3"
		}
		all = append(all, &probe.Dependency{Kind: probe.Binaries, Name: name, Detail: detail,
			Failed: "the storage of binaries." + name + " is unavailable", Check: g.Storages[name].Ping})
	}
	detail := "embedded"
	if len(g.Config.Bus.URL) > 0 {
		detail = "external"
	}
	return append(all,
		&probe.Dependency{Kind: probe.Bus, Detail: detail, Check: g.Bus.Ready},
		&probe.Dependency{Kind: probe.Outbox, Detail: "to the bus",
			Check: func(context.Context) error { return outboxWorks(g.Relay) }},
		&probe.Dependency{Kind: probe.Listeners, Detail: "built in",
			Check: func(context.Context) error { return h.Missing() }},
	)
}

// outboxWorks returns an error while the bus accepts no events.
func outboxWorks(r *outbox.Relay) error {
	if r.Stats().Unavailable {
		return errs.New(errs.Unavailable,
			"the bus does not accept events; they stay in their records and will be retried")
	}
	return nil
}

// Ready returns the reason why this process is not ready, or its degraded parts if it is.
//
// A front is ready while it can read and write objects. All fronts share their dependencies, so for any other failure a
// load balancer would remove all fronts at once. Other processes get no requests, so they are ready if they can do all
// of their work.
func (h *Health) Ready(ctx context.Context) (degraded []string, err error) {
	if h.Lifetime.Stopping.Err() != nil {
		return nil, system.ErrStopping
	}
	return h.readyWith(h.States(ctx))
}

// States checks all dependencies of the process concurrently.
func (h *Health) States(ctx context.Context) []probe.State {
	return probe.Ask(ctx, h.Served.Now().Depends)
}

// readyWith is ready for the states of the parts.
func (h *Health) readyWith(states []probe.State) (degraded []string, err error) {
	served := false
	for _, s := range states {
		p, state := s.Of, s.Err
		switch {
		case state == nil:
			served = served || h.serves(p)
		case err == nil && h.requires(p):
			err = state
		}
		if state != nil {
			degraded = append(degraded, probe.Says(state))
		}
	}
	if err != nil && (!served || !h.Roles.Has(plan.RoleFront)) {
		return nil, err
	}
	return append(degraded, h.Shortcomings()...), nil
}

// serves reports whether a front can serve some requests with this part alone: a backend of stores that clients may
// use.
func (h *Health) serves(p *probe.Dependency) bool {
	if p.Kind != probe.Backend {
		return false
	}
	exposed := false
	for _, s := range h.Served.Now().Config.Stores {
		if s.Expose != nil && s.Backend == p.Name {
			return true
		}
		exposed = exposed || s.Expose != nil
	}
	return !exposed
}

// requires reports whether a process can't be ready without a part. A front can be ready while another part still
// serves requests.
func (h *Health) requires(p *probe.Dependency) bool {
	if h.Roles.Has(plan.RoleFront) {
		return h.serves(p)
	}
	return p.Kind != probe.Binaries || h.Roles.Has(sweep.Name)
}

// Unavailable returns an error if a backend, a storage or the bus is unavailable now.
func (h *Health) Unavailable(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, probe.Timeout)
	defer cancel()
	for _, p := range h.dependencies(h.Served.Now()) {
		if err := p.State(ctx); err != nil && p.Kind != probe.Listeners {
			return err
		}
	}
	return nil
}

var (
	readyDesc = prometheus.NewDesc("belfry_ready", "1 while /readyz is 200.", nil, nil)
	partDesc  = prometheus.NewDesc("belfry_part_up", "1 while a part that the process depends on works: a "+
		"backend, a storage of binaries, the bus, the outbox, the built-in listeners.", []string{"kind", "name"}, nil)
	busDesc   = prometheus.NewDesc("belfry_bus_up", "1 while events can be published.", nil, nil)
	buildDesc = prometheus.NewDesc("belfry_build_info", "1, with the version of the process.", []string{"version"},
		nil)
	diskFreeDesc = prometheus.NewDesc("belfry_disk_free_bytes",
		"Space that is free on the disk of a folder that belfry writes.", []string{"folder"}, nil)
	diskSizeDesc = prometheus.NewDesc("belfry_disk_size_bytes", "Size of the disk of a folder that belfry writes.",
		[]string{"folder"}, nil)
)

// register adds the metrics of the process, of its dependencies, and of its machine.
func (h *Health) register() {
	h.Metrics.Registry.MustRegister(collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	h.Metrics.Asked.MustRegister(prom.Computed(h.collect, readyDesc, partDesc, busDesc, buildDesc, diskFreeDesc,
		diskSizeDesc))
}

func (h *Health) collect(ctx context.Context, values prom.Values) {
	states := h.States(ctx)
	for _, s := range states {
		up := prom.OneIf(s.Err == nil)
		values.Gauge(partDesc, up, s.Of.Kind, s.Of.Name)
		if s.Of.Kind == probe.Bus {
			values.Gauge(busDesc, up)
		}
	}
	_, err := h.readyWith(states)
	values.Gauge(readyDesc, prom.OneIf(err == nil && h.Lifetime.Stopping.Err() == nil))
	values.Gauge(buildDesc, 1, plan.Version())
	for _, at := range examine.WrittenFolders(h.Served.Now().Config) {
		if free, size, known := examine.Space(examine.Existing(at.Folder)); known {
			values.Gauge(diskFreeDesc, float64(free), at.Name)
			values.Gauge(diskSizeDesc, float64(size), at.Name)
		}
	}
}
