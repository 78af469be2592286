package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"
	"time"

	"belfry/config"
	"belfry/internal/backoff"
	"belfry/pkg/app/certificate"
	"belfry/pkg/errs"
	"belfry/pkg/search"
	"belfry/pkg/store"
	"belfry/pkg/store/driver"
	"belfry/pkg/store/dynamostore"
	"belfry/pkg/store/filestore"
	"belfry/pkg/store/mongostore"
)

// openBackend opens one backend. Only a folder must be available at once; awaitSpace is called while its disk is
// full, and may be nil.
func openBackend(ctx context.Context, b config.Backend, log *slog.Logger, awaitSpace func(error) error) (driver.Backend, error) {
	switch b.Type {
	case "mongodb":
		roots, err := certificate.Trusted(b.MongoDB.CA)
		if err != nil {
			return nil, err
		}
		return mongostore.Open(ctx, mongostore.Options{URL: string(b.MongoDB.URL), Database: b.MongoDB.Database, RootCAs: roots})
	case "dynamodb":
		d := b.DynamoDB
		roots, err := certificate.Trusted(d.CA)
		if err != nil {
			return nil, err
		}
		return dynamostore.Open(ctx, dynamostore.Options{
			Region: d.Region, Endpoint: d.Endpoint, TablePrefix: d.TablePrefix, Logger: log, RootCAs: roots,
		})
	default:
		return filestore.Open(b.File.Folder, filestore.Options{CacheBytes: cacheBytes(b.File.Cache), AwaitSpace: awaitSpace})
	}
}

// commandCache is the default cache of a command, in place of a part of the memory.
const commandCache = 16 << 20

// openBackendOnce opens one backend for a command that neither waits nor logs. It reads what there is once, or little of it: a large
// cache would be memory for nothing, of which the collector needs as much again.
func openBackendOnce(ctx context.Context, _ string, b config.Backend) (driver.Backend, error) {
	if b.File != nil {
		file := *b.File
		file.Cache = cmp.Or(file.Cache, commandCache)
		b.File = &file
	}
	return openBackend(ctx, b, slog.New(slog.DiscardHandler), nil)
}

// openBackends opens the backends that stores use.
func openBackends(ctx context.Context, p *plan, open func(ctx context.Context, name string, b config.Backend) (driver.Backend, error)) (map[string]driver.Backend, error) {
	backends := map[string]driver.Backend{}
	for _, s := range p.config.Stores {
		if backends[s.Backend] != nil {
			continue
		}
		b, err := open(ctx, s.Backend, p.config.Backends[s.Backend])
		if err != nil {
			return nil, errors.Join(errs.Wrap(err, errs.KindOf(err), "backend %s", s.Backend), closeBackends(backends))
		}
		backends[s.Backend] = b
	}
	return backends, nil
}

func closeBackends(all map[string]driver.Backend) error { return closeAll(all, "backend ") }

// closeAll closes all values, and returns an error that names those that failed.
func closeAll[T io.Closer](all map[string]T, kind string) error {
	var failed []error
	for name, each := range all {
		if err := each.Close(); err != nil {
			failed = append(failed, fmt.Errorf("closing %s%s: %w", kind, name, err))
		}
	}
	return errors.Join(failed...)
}

// opener opens one store in its backend.
type opener func(ctx context.Context, backend string, b driver.Backend, o store.Options) (*store.Store, error)

func openOnce(ctx context.Context, backend string, b driver.Backend, o store.Options) (*store.Store, error) {
	s, err := store.Open(ctx, b, o)
	if err != nil {
		return nil, errs.Wrap(err, errs.KindOf(err), "backend %s", backend)
	}
	return s, nil
}

// openStores opens every store, that of the key for sealing first; complete adds the options that only a running
// belfry has.
func openStores(ctx context.Context, p *plan, backends map[string]driver.Backend, open opener, complete func(*store.Options)) (*store.Set, error) {
	var stores []*store.Store
	ordered := slices.Clone(p.stores)
	if i := slices.IndexFunc(ordered, func(o store.Options) bool { return o.Name == config.SealKeyStore }); i > 0 {
		ordered[0], ordered[i] = ordered[i], ordered[0]
	}
	for _, o := range ordered {
		complete(&o)
		name := p.config.Stores[o.Name].Backend
		s, err := open(ctx, name, backends[name], o)
		if err != nil {
			return nil, err
		}
		stores = append(stores, s)
	}
	return store.NewSet(stores, p.mappings), nil
}

func (a *App) openBackends(ctx context.Context) error {
	backends, err := openBackends(ctx, a.now().plan, a.openBackendWithRetry)
	if err != nil {
		return err
	}
	a.backends = backends
	a.onStop("the backends", func(context.Context) error { return closeBackends(backends) })
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
	set, err := openStores(ctx, a.plan, a.backends, a.openStore, a.complete)
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
	err = a.awaitBackend(ctx, name, func() (err error) { opened, err = openBackend(ctx, b, a.log, space); return err })
	return opened, err
}

// openWithRetry opens a store once its backend is available.
func (a *App) openWithRetry(ctx context.Context, backend string, b driver.Backend, o store.Options) (opened *store.Store, err error) {
	err = a.awaitBackend(ctx, backend, func() (err error) { opened, err = openOnce(ctx, backend, b, o); return err })
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
