package app

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"belfry/config"
	"belfry/internal/backoff"
	"belfry/pkg/app/open"
	"belfry/pkg/app/part"
	"belfry/pkg/errs"
	"belfry/pkg/search"
	"belfry/pkg/store"
	"belfry/pkg/store/driver"
)

// backends opens the backends that stores use. One that is opened stays so until the process ends: the relay may still publish
// events of stores that a reload has removed.
type backends struct {
	app *App
	all map[string]driver.Backend
}

func (b *backends) part() part.Part[*serving] {
	return part.Part[*serving]{
		Name: "the backends", Start: b.start, Reload: b.reload,
		Stop: func(context.Context) error { return open.CloseBackends(b.all) },
	}
}

func (b *backends) start(ctx context.Context, first *serving) (err error) {
	b.all, err = open.Backends(ctx, first.plan, b.app.openBackendWithRetry)
	first.backends = b.all
	return err
}

// reload opens the backends that no store has used before.
func (b *backends) reload(ctx context.Context, _, next *serving) (part.Change, error) {
	opened := map[string]driver.Backend{}
	next.backends = map[string]driver.Backend{}
	for _, s := range next.config.Stores {
		name := s.Backend
		if next.backends[name] != nil {
			continue
		}
		d := b.all[name]
		if d == nil {
			var err error
			if d, err = open.Backend(ctx, next.config.Backends[name], b.app.log, nil); err != nil {
				return part.Change{}, errors.Join(errs.Wrap(err, errs.KindOf(err), "backend %s", name), open.CloseBackends(opened))
			}
			opened[name] = d
		}
		next.backends[name] = d
	}
	return part.Change{
		Apply: func() {
			merged := maps.Clone(b.all)
			maps.Copy(merged, opened)
			b.all = merged
		},
		Cancel: func() { _ = open.CloseBackends(opened) },
	}, nil
}

// spaceInterval is how often a write is tried again while the disk is full at the start.
const spaceInterval = 500 * time.Millisecond

// awaitSpace returns the function that is called while the disk of a backend is full at the start: belfry waits for
// space until ctx ends.
func (a *App) awaitSpace(ctx context.Context, backend string) func(error) error {
	var once sync.Once
	return func(full error) error {
		once.Do(func() {
			a.front.waiting.Store(errs.New(errs.Unavailable, "belfry is starting and waits for space on the disk of backend %s", backend))
			a.log.Error("the disk of a backend is full; belfry starts once there is space", "backend", backend, "error", full)
		})
		if err := backoff.Sleep(ctx, spaceInterval); err != nil {
			return errors.Join(err, full)
		}
		return nil
	}
}

// complete adds the options of a store that only a running belfry has.
func (a *serving) complete(o *store.Options) {
	o.Outbox, o.Announce, o.Interceptor = a.relay, a.bus, a.interceptor(o.Name)
	o.InterceptsGet = len(a.config.Stores[o.Name].Intercept["get"]) > 0
	o.Logger = a.log
	if o.Name == a.config.Authentication.UserStore {
		o.BeforeDelete = func(ctx context.Context, user store.Stored) error { return a.auth.Admin.AnnounceDeletion(ctx, user) }
	}
	if len(o.Search) > 0 {
		o.Searcher = search.NewClient(a.bus.Conn())
	}
	if a.sealer != nil {
		o.Sealer = a.sealer
	}
}

// openStores opens all stores.
func (a *serving) openStores(ctx context.Context) error {
	set, err := open.Stores(ctx, a.plan, a.backends, a.openStore, a.complete)
	if err != nil {
		return err
	}
	a.set = set
	for name, s := range set.Stores() {
		a.relay.Add(name, s.Driver())
	}
	return nil
}

// reloadStores makes the stores of another configuration: over the same records, and new ones.
func reloadStores(ctx context.Context, before, next *serving) (part.Change, error) {
	var stores []*store.Store
	var added []*store.Store
	for _, o := range next.plan.Stores {
		next.complete(&o)
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

// openStore opens one store, and reads the key for sealing from its store.
func (a *App) openStore(ctx context.Context, backend string, b driver.Backend, o store.Options) (*store.Store, error) {
	opened, err := a.openWithRetry(ctx, backend, b, o)
	if err == nil && o.Name == config.SealKeyStore {
		err = a.openSealer(ctx, opened)
	}
	return opened, err
}

// The first and the longest delay between attempts to open a store whose backend is unavailable.
const (
	startRetryMin = 250 * time.Millisecond
	startRetryMax = 10 * time.Second
)

// openBackendWithRetry opens a backend once what it needs for that is available: the names of its servers
// may have to be resolved.
func (a *App) openBackendWithRetry(ctx context.Context, name string, b config.Backend) (opened driver.Backend, err error) {
	space := a.awaitSpace(ctx, name)
	err = a.awaitBackend(ctx, name, func() (err error) { opened, err = open.Backend(ctx, b, a.log, space); return err })
	return opened, err
}

// openWithRetry opens a store once its backend is available.
func (a *App) openWithRetry(ctx context.Context, backend string, b driver.Backend, o store.Options) (opened *store.Store, err error) {
	err = a.awaitBackend(ctx, backend, func() (err error) { opened, err = open.StoreOnce(ctx, backend, b, o); return err })
	return opened, err
}

// awaitBackend calls open until its backend is available; the log and the replies of HTTP say so in the
// meantime. It does not wait for a folder, which does not recover by itself.
func (a *App) awaitBackend(ctx context.Context, backend string, open func() error) error {
	said := ""
	for delays := backoff.New(startRetryMin, startRetryMax); ; {
		err := open()
		if err == nil {
			a.front.waiting.Store(errStarting())
			if said != "" {
				a.log.Info("the backend is available", "backend", backend)
			}
			return nil
		}
		if !errors.Is(err, errs.Unavailable) || a.now().config.Backends[backend].Type == "file" {
			return err
		}
		a.front.waiting.Store(errs.New(errs.Unavailable, "belfry is starting and waits for backend %s", backend))
		if text := err.Error(); text != said {
			said = text
			a.log.Warn("a backend is unavailable; retrying", "backend", backend, "error", err)
		}
		if delays.Wait(ctx) != nil {
			return err
		}
	}
}
