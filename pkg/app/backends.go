package app

import (
	"context"
	"errors"
	"maps"

	"github.com/prometheus/client_golang/prometheus"

	"belfry/config"
	"belfry/internal/prom"
	"belfry/pkg/app/open"
	"belfry/pkg/app/part"
	"belfry/pkg/search"
	"belfry/pkg/store"
	"belfry/pkg/store/driver"
)

// backends opens the backends that stores use. One that is opened stays so until the process ends: the relay may still publish
// events of stores that a reload has removed.
type backends struct {
	awaiter
	served  *current
	metrics prometheus.Registerer

	all map[string]driver.Backend
}

// part is the part of a process.
func (b *backends) part() servedPart {
	return servedPart{
		Name: "the backends", Start: b.start, Reload: b.reload,
		Stop: func(context.Context) error { return open.CloseBackends(b.all) },
	}
}

func (b *backends) start(ctx context.Context, first *generation) (err error) {
	b.all, err = open.Backends(ctx, first.plan, func(ctx context.Context, name string, of config.Backend) (opened driver.Backend, err error) {
		space := b.space(ctx, name)
		err = b.backend(ctx, first.config, name, func() (err error) { opened, err = open.Backend(ctx, of, b.log, space); return err })
		return opened, err
	})
	first.backends = b.all
	b.metrics.MustRegister(b.caches())
	return err
}

// reload opens the backends that no store has used before.
func (b *backends) reload(ctx context.Context, _, next *generation) (part.Change, error) {
	opened := map[string]driver.Backend{}
	all, err := open.Backends(ctx, next.plan, func(ctx context.Context, name string, of config.Backend) (driver.Backend, error) {
		if known := b.all[name]; known != nil {
			return known, nil
		}
		d, err := open.Backend(ctx, of, b.log, nil)
		if err == nil {
			opened[name] = d
		}
		return d, err
	})
	if err != nil {
		return part.Change{}, errors.Join(err, open.CloseBackends(opened))
	}
	next.backends = all
	return part.Change{
		Apply: func() {
			merged := maps.Clone(b.all)
			maps.Copy(merged, opened)
			b.all = merged
		},
		Cancel: func() { _ = open.CloseBackends(opened) },
	}, nil
}

// stores opens the stores, and reads the keys for sealing.
type stores struct {
	awaiter
	served  *current
	metrics prometheus.Registerer

	running part.Background
}

// part is the part of a process.
func (s *stores) part() servedPart {
	return servedPart{Name: "stores", Start: s.start, Reload: s.reload, Stop: s.running.Stop}
}

// complete adds the options of a store that only a running belfry has.
func (s *stores) complete(g *generation, o *store.Options) {
	o.Outbox, o.Announce, o.Interceptor = g.relay, g.bus, interceptors(g, o.Name, s.log)
	o.InterceptsGet = len(g.config.Stores[o.Name].Intercept["get"]) > 0
	o.Logger = s.log
	if o.Name == g.config.Authentication.UserStore {
		o.BeforeDelete = func(ctx context.Context, user store.Stored) error { return g.auth.Admin.AnnounceDeletion(ctx, user) }
	}
	if len(o.Search) > 0 {
		o.Searcher = search.NewClient(g.bus.Conn())
	}
	if g.sealer != nil {
		o.Sealer = g.sealer
	}
}

// start opens all stores.
func (s *stores) start(ctx context.Context, first *generation) error {
	set, err := open.Stores(ctx, first.plan, first.backends, func(ctx context.Context, backend string, b driver.Backend, o store.Options) (opened *store.Store, err error) {
		err = s.backend(ctx, first.config, backend, func() (err error) { opened, err = open.StoreOnce(ctx, backend, b, o); return err })
		if err == nil && o.Name == config.SealKeyStore {
			err = s.openSealer(ctx, first, opened)
		}
		return opened, err
	}, func(o *store.Options) { s.complete(first, o) })
	if err != nil {
		return err
	}
	first.set = set
	for name, s := range set.Stores() {
		first.relay.Add(name, s.Driver())
	}
	s.metrics.MustRegister(s.counts())
	return nil
}

// reload makes the stores of another configuration: over the same records, and new ones.
func (s *stores) reload(ctx context.Context, before, next *generation) (part.Change, error) {
	var stores []*store.Store
	var added []*store.Store
	for _, o := range next.plan.Stores {
		s.complete(next, &o)
		if known := before.set.Store(o.Name); known != nil {
			s, without := known.Reconfigured(o)
			stores = append(stores, s)
			for _, i := range without {
				next.unbuilt = append(next.unbuilt, o.Name+"."+i.Name)
			}
			continue
		}
		backend := next.config.Stores[o.Name].Backend
		s, err := open.StoreOnce(ctx, backend, next.backends[backend], o)
		if err != nil {
			return part.Change{}, err
		}
		stores, added = append(stores, s), append(added, s)
	}
	next.set = store.NewSet(stores, next.plan.Mappings)
	return part.Change{Apply: func() {
		for _, s := range added {
			next.relay.Add(s.Name(), s.Driver())
		}
	}}, nil
}

var (
	objectsDesc = prometheus.NewDesc("belfry_objects", "Approximate number of objects in a store.", []string{"store"}, nil)
	pendingDesc = prometheus.NewDesc("belfry_events_pending", "Events in records that are not yet published.", []string{"store"}, nil)
)

// counts are the metrics of stores.
func (s *stores) counts() prometheus.Collector {
	return prom.Computed(func(ctx context.Context, values prom.Values) {
		for name, of := range s.served.now().set.Stores() {
			if objects, pending, err := of.Count(ctx); err == nil {
				values.Gauge(objectsDesc, float64(objects), name)
				values.Gauge(pendingDesc, float64(pending), name)
			}
		}
	}, objectsDesc, pendingDesc)
}
