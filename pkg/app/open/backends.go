// Package open opens the backends, stores, storages of files, and the bus of a plan. Commands open them once; a serving
// process keeps them open.
package open

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"

	"belfry/config"
	"belfry/internal/memory"
	"belfry/pkg/app/certificate"
	"belfry/pkg/app/plan"
	"belfry/pkg/errs"
	"belfry/pkg/store"
	"belfry/pkg/store/driver"
	"belfry/pkg/store/dynamostore"
	"belfry/pkg/store/filestore"
	"belfry/pkg/store/mongostore"
)

// Backend opens one backend. Only a folder has to be available immediately; awaitSpace is called while its disk is
// full, and may be nil.
func Backend(ctx context.Context, b config.Backend, log *slog.Logger,
	awaitSpace func(error) error) (driver.Backend, error) {
	switch b.Type {
	case "mongodb":
		roots, err := certificate.Trusted(b.MongoDB.CA)
		if err != nil {
			return nil, err
		}
		return mongostore.Open(ctx,
			mongostore.Options{URL: string(b.MongoDB.URL), Database: b.MongoDB.Database, RootCAs: roots})
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
		return filestore.Open(b.File.Folder,
			fileOptions(b.File.Cache, awaitSpace))
	}
}

// CommandCache is the default size of a command's cache, instead of a part of the memory.
const CommandCache = 16 << 20

// BackendOnce opens one backend for a command that neither waits nor logs. A command reads the data once, or a small
// part of it, so a large cache would only waste memory, twice that with the garbage collector.
func BackendOnce(ctx context.Context, _ string, b config.Backend) (driver.Backend, error) {
	if b.File != nil {
		file := *b.File
		file.Cache = cmp.Or(file.Cache, CommandCache)
		b.File = &file
	}
	return Backend(ctx, b, slog.New(slog.DiscardHandler), nil)
}

// Backends opens the backends that stores use.
func Backends(ctx context.Context, p *plan.Plan,
	open func(ctx context.Context, name string, b config.Backend) (driver.Backend, error)) (map[string]driver.Backend,
	error) {
	backends := map[string]driver.Backend{}
	for _, s := range p.Config.Stores {
		if backends[s.Backend] != nil {
			continue
		}
		b, err := open(ctx, s.Backend, p.Config.Backends[s.Backend])
		if err != nil {
			return nil, errors.Join(errs.Wrap(err, errs.KindOf(err), "backend %s", s.Backend), CloseBackends(backends))
		}
		backends[s.Backend] = b
	}
	return backends, nil
}

// CloseBackends closes backends.
func CloseBackends(all map[string]driver.Backend) error { return closeAll(all, "backend ") }

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

// StoreOpener opens one store in its backend.
type StoreOpener func(ctx context.Context, backend string, b driver.Backend, o store.Options) (*store.Store, error)

// StoreOnce opens one store, without waiting for its backend. It builds incomplete indexes.
func StoreOnce(ctx context.Context, backend string, b driver.Backend, o store.Options) (*store.Store, error) {
	s, err := store.Open(ctx, b, o)
	return s, inBackend(backend, err)
}

// Opener returns the function with which a process opens its stores. If no other process can have them open, it builds
// incomplete indexes at once. Otherwise other processes may be writing with other indexes, so indexes are built once no
// process does.
func Opener(p *plan.Plan) StoreOpener {
	if p.Shared() {
		return StoreOnline
	}
	return StoreOnce
}

// StoreOnline opens one store beside others on the same records. It builds no indexes.
func StoreOnline(ctx context.Context, backend string, b driver.Backend, o store.Options) (*store.Store, error) {
	s, err := store.OpenOnline(ctx, b, o)
	return s, inBackend(backend, err)
}

func inBackend(backend string, err error) error {
	if err != nil {
		return errs.Wrap(err, errs.KindOf(err), "backend %s", backend)
	}
	return nil
}

// Stores opens every store, that of the key for sealing first; complete adds the options that only a running
// belfry has.
func Stores(ctx context.Context, p *plan.Plan, backends map[string]driver.Backend, open StoreOpener,
	complete func(*store.Options)) (*store.Set, error) {
	var stores []*store.Store
	ordered := slices.Clone(p.Stores)
	if i := slices.IndexFunc(ordered, func(o store.Options) bool { return o.Name == config.SealKeyStore }); i > 0 {
		ordered[0], ordered[i] = ordered[i], ordered[0]
	}
	for _, o := range ordered {
		complete(&o)
		name := p.Config.Stores[o.Name].Backend
		s, err := open(ctx, name, backends[name], o)
		if err != nil {
			return nil, err
		}
		stores = append(stores, s)
	}
	return store.NewSet(stores, p.Mappings), nil
}

// fileOptions are those of a backend of type file, with the configured size of its cache; 0: its part of the budget.
func fileOptions(cache int64, awaitSpace func(error) error) filestore.Options {
	budget := memory.Of()
	o := filestore.Options{MemTableBytes: budget.MemTable, AwaitSpace: awaitSpace, CacheBytes: cache}
	if cache == 0 {
		o.CacheBytes, o.CacheMost = budget.Cache, budget.CacheMost
	}
	return o
}
