package app

import (
	"context"
	"errors"
	"sync"
	"time"

	"belfry/config"
	"belfry/internal/backoff"
	"belfry/pkg/app/open"
	"belfry/pkg/errs"
	"belfry/pkg/search"
	"belfry/pkg/store"
	"belfry/pkg/store/driver"
)

func (a *App) openBackends(ctx context.Context) error {
	backends, err := open.Backends(ctx, a.now().plan, a.openBackendWithRetry)
	if err != nil {
		return err
	}
	a.backends = backends
	a.onStop("the backends", func(context.Context) error { return open.CloseBackends(backends) })
	return nil
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
