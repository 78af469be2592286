// Package data has the parts of a process that open its data and keep it in order. They are the lock of the data
// folder, backends, stores with the keys for sealing, storages of binaries, claims of unique values, and the purge of
// tombstones.
package data

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"reflect"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"belfry/config"
	"belfry/internal/prom"
	"belfry/pkg/app/command"
	"belfry/pkg/app/open"
	"belfry/pkg/app/part"
	"belfry/pkg/app/serving"
	"belfry/pkg/errs"
	"belfry/pkg/intercept"
	"belfry/pkg/search"
	"belfry/pkg/store"
	"belfry/pkg/store/driver"
	"belfry/pkg/store/filestore"
)

// Backends opens the backends that stores use. An open backend stays open until the process ends: the relay may still
// publish events of stores that a reload has removed.
type Backends struct {
	Awaiter
	Served  *serving.Current
	Metrics prometheus.Registerer

	all map[string]driver.Backend
	as  map[string]config.Backend // how they were opened
}

// Part returns the functions that start, reload and stop it.
func (b *Backends) Part() serving.Part {
	return serving.Part{
		Name: "the backends", Start: b.start, Reload: b.reload,
		Stop: func(context.Context) error { return open.CloseBackends(b.all) },
	}
}

func (b *Backends) start(ctx context.Context, first *serving.Generation) (err error) {
	b.all, err = open.Backends(ctx, first.Plan,
		func(ctx context.Context, name string, of config.Backend) (opened driver.Backend, err error) {
			space := b.space(ctx, name)
			err = b.Await(ctx, first.Config, name, func() (err error) {
				opened, err = open.Backend(ctx, of, b.Log,
					space)
				return err
			})
			return opened, err
		})
	b.as = maps.Clone(first.Config.Backends)
	maps.DeleteFunc(b.as, func(name string, _ config.Backend) bool { return b.all[name] == nil })
	first.Backends = b.all
	b.Metrics.MustRegister(b.caches())
	return err
}

// reload opens the backends that no store has used before.
func (b *Backends) reload(ctx context.Context, _, next *serving.Generation) (part.Change, error) {
	opened := map[string]driver.Backend{}
	next.Backends = map[string]driver.Backend{}
	for _, s := range next.Config.Stores {
		name := s.Backend
		if next.Backends[name] != nil {
			continue
		}
		if problems := b.differs(next.Config, name); len(problems) > 0 {
			return part.Change{}, errors.Join(problems, open.CloseBackends(opened))
		}
		d := b.all[name]
		if d == nil {
			var err error
			if d, err = open.Backend(ctx, next.Config.Backends[name], b.Log, nil); err != nil {
				return part.Change{}, errors.Join(errs.Wrap(err, errs.KindOf(err), "backend %s", name),
					open.CloseBackends(opened))
			}
			opened[name] = d
		}
		next.Backends[name] = d
	}
	return part.Change{
		Apply: func() {
			merged := maps.Clone(b.all)
			maps.Copy(merged, opened)
			b.all = merged
			for name := range opened {
				b.as[name] = next.Config.Backends[name]
			}
		},
		Cancel: func() { _ = open.CloseBackends(opened) },
	}, nil
}

// differs refuses a backend that is open with other settings, from before a reload that removed it: its name would show
// other data than after a restart. A folder can't be opened under a second name.
func (b *Backends) differs(c *config.Config, name string) config.Problems {
	next := c.Backends[name]
	if b.all[name] != nil {
		if reflect.DeepEqual(b.as[name], next) {
			return nil
		}
		return config.Problems{c.Problem("backends."+name,
			"is still open with the settings from before it was removed: restart belfry, or set those again")}
	}
	for other, as := range b.as {
		if as.File != nil && next.File != nil && as.File.Folder == next.File.Folder {
			return config.Problems{c.Problem("backends."+name,
				"has the folder that is still open as backend %s: restart belfry, or use that name", other)}
		}
	}
	return nil
}

// Stores opens the stores, and reads the keys for sealing.
type Stores struct {
	Awaiter
	Served  *serving.Current
	Metrics prometheus.Registerer
	Chunks  *atomic.Bool // whether all processes that share stores read arrays in chunks

	running part.Background
	relayed map[string]string // the backends of the stores that the relay has, which keeps those that a reload removes
}

// Part returns the functions that start, reload and stop it.
func (s *Stores) Part() serving.Part {
	return serving.Part{Name: "stores", Start: s.start, Reload: s.reload, Stop: s.running.Stop}
}

// complete adds the options of a store that only a running belfry has.
func (s *Stores) complete(g *serving.Generation, o *store.Options) {
	o.Outbox, o.Announce, o.Interceptor = g.Relay, g.Bus, Interceptors(g, o.Name, s.Log)
	o.InterceptsGet = len(g.Config.Stores[o.Name].Intercept["get"]) > 0
	o.Logger = s.Log
	if o.Name == g.Config.Authentication.UserStore {
		o.BeforeDelete = func(ctx context.Context, user store.Stored) error {
			return g.Auth.Admin.AnnounceDeletion(ctx, user)
		}
	}
	if len(o.Search) > 0 {
		o.Searcher = search.NewClient(g.Bus.Conn())
	}
	if g.Sealer != nil {
		o.Sealer = g.Sealer
	}
	if g.Config.Backends[g.Config.Stores[o.Name].Backend].File == nil {
		o.MoreChunks = s.Chunks.Load
	}
}

// start opens all stores.
func (s *Stores) start(ctx context.Context, first *serving.Generation) error {
	openStore := open.Opener(first.Plan)
	set, err := open.Stores(ctx, first.Plan, first.Backends,
		func(ctx context.Context, backend string, b driver.Backend, o store.Options) (opened *store.Store, err error) {
			err = s.Await(ctx, first.Config, backend, func() (err error) {
				opened, err = openStore(ctx, backend, b,
					o)
				return err
			})
			if err == nil && o.Name == config.SealKeyStore {
				err = s.openSealer(ctx, first, opened)
			}
			return opened, err
		}, func(o *store.Options) { s.complete(first, o) })
	if err != nil {
		return err
	}
	first.Set, s.relayed = set, map[string]string{}
	for _, of := range set.Stores() {
		of.Indexes().Settle() // no part of this process has other indexes
		s.relay(first, of)
	}
	s.Metrics.MustRegister(s.counts())
	return nil
}

// relay has the events of a store published, once: a store may be removed and added again.
func (s *Stores) relay(g *serving.Generation, of *store.Store) {
	backend := g.Config.Stores[of.Name()].Backend
	if s.relayed[of.Name()] != backend {
		s.relayed[of.Name()] = backend
		g.Relay.Add(of.Name(), of.Driver())
	}
}

// reload makes the stores of another configuration. Existing stores keep their records.
func (s *Stores) reload(ctx context.Context, before, next *serving.Generation) (part.Change, error) {
	var stores []*store.Store
	var added []*store.Store
	for _, o := range next.Plan.Stores {
		s.complete(next, &o)
		backend := next.Config.Stores[o.Name].Backend
		known := before.Set.Store(o.Name)
		s, err := reopen(ctx, known, backend, next.Backends[backend], o)
		if err != nil {
			return part.Change{}, err
		}
		building, err := s.Building(ctx)
		if err != nil {
			return part.Change{}, err
		}
		for _, index := range building {
			next.Building = append(next.Building, o.Name+"."+index)
		}
		if stores = append(stores, s); known == nil {
			added = append(added, s)
		}
	}
	next.Set = store.NewSet(stores, next.Plan.Mappings)
	return part.Change{Apply: func() {
		for _, of := range added {
			s.relay(next, of)
		}
		for name, s := range next.Set.Stores() {
			if known := before.Set.Store(name); known != nil {
				known.Indexes().Succeed(s.Indexes())
			}
		}
	}, Settle: func(context.Context) {
		for _, s := range next.Set.Stores() {
			s.Indexes().Settle()
		}
	}}, nil
}

// reopen returns a store with the records of a served one, or opens a new one.
func reopen(ctx context.Context, known *store.Store, backend string, b driver.Backend,
	o store.Options) (*store.Store, error) {
	if known == nil {
		return open.StoreOnline(ctx, backend, b, o)
	}
	s, err := known.Reconfigured(ctx, b, o)
	if err != nil {
		return nil, errs.Wrap(err, errs.KindOf(err), "backend %s", backend)
	}
	return s, nil
}

var (
	objectsDesc = prometheus.NewDesc("belfry_objects", "Approximate number of objects in a store.", []string{"store"},
		nil)
	pendingDesc = prometheus.NewDesc("belfry_events_pending", "Events in records that are not yet published.",
		[]string{"store"}, nil)
)

// counts are the metrics of stores.
func (s *Stores) counts() prometheus.Collector {
	return prom.Computed(func(ctx context.Context, values prom.Values) {
		for name, of := range s.Served.Now().Set.Stores() {
			if objects, pending, err := of.Count(ctx); err == nil {
				values.Gauge(objectsDesc, float64(objects), name)
				values.Gauge(pendingDesc, float64(pending), name)
			}
		}
	}, objectsDesc, pendingDesc)
}

var (
	cacheLabels    = []string{"backend"}
	cacheBytesDesc = prometheus.NewDesc("belfry_cache_bytes", "Bytes in the cache of a backend of type file.",
		cacheLabels, nil)
	cacheHitsDesc = prometheus.NewDesc("belfry_cache_hits_total",
		"Blocks that a backend of type file found in its cache.", cacheLabels, nil)
	cacheMissesDesc = prometheus.NewDesc("belfry_cache_misses_total",
		"Blocks that a backend of type file read from its folder.", cacheLabels, nil)
)

// caches are the metrics of the caches of backends of type file.
func (b *Backends) caches() prometheus.Collector {
	return prom.Computed(func(_ context.Context, values prom.Values) {
		for name, backend := range b.Served.Now().Backends {
			files, ok := backend.(*filestore.Backend)
			if !ok {
				continue
			}
			m := files.Metrics()
			values.Gauge(cacheBytesDesc, float64(m.CacheBytes), name)
			values.Counter(cacheHitsDesc, float64(m.CacheHits), name)
			values.Counter(cacheMissesDesc, float64(m.CacheMisses), name)
		}
	}, cacheBytesDesc, cacheHitsDesc, cacheMissesDesc)
}

// Interceptors returns the chain of a store's configured interceptors, or nil.
func Interceptors(g *serving.Generation, name string, log *slog.Logger) store.Interceptor {
	rules := map[string][]intercept.Rule{}
	for op, list := range g.Config.Stores[name].Intercept {
		for _, i := range list {
			rules[op] = append(rules[op],
				intercept.Rule{Name: i.Name, Timeout: i.Timeout, FailOpen: i.OnError == "accept"})
		}
	}
	if len(rules) == 0 {
		return nil
	}
	return intercept.NewChain(g.Bus.Conn(), rules, log)
}

// openSealer reads the keys for sealing once their store is available. All processes that share the stores have the
// same keys.
func (s *Stores) openSealer(ctx context.Context, first *serving.Generation, keys *store.Store) error {
	err := s.Await(ctx, first.Config, first.Config.Stores[config.SealKeyStore].Backend, func() (err error) {
		first.Sealer, err = command.LoadSealer(ctx, keys)
		return err
	})
	if err == nil {
		s.followSealKeys(first, keys)
	}
	return err
}

// followSealKeys reads the keys again from time to time: another process may have added one.
func (s *Stores) followSealKeys(first *serving.Generation, keys *store.Store) {
	s.running.Every(command.SealKeysInterval, func(ctx context.Context) bool {
		if err := command.ReadSealKeys(ctx, keys, first.Sealer); err != nil && ctx.Err() == nil {
			s.Log.Error("the keys for sealing can't be read; the ones read before are used", "error", err)
		}
		return true
	})
}
