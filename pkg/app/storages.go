package app

import (
	"context"
	"errors"
	"maps"

	"github.com/prometheus/client_golang/prometheus"

	"belfry/pkg/app/open"
	"belfry/pkg/app/part"
	storage "belfry/pkg/binary/driver"
)

// storages opens the storages of binary services.
type storages struct {
	metrics prometheus.Registerer

	all map[string]storage.Storage
}

// part is the part of a process.
func (b *storages) part() servedPart {
	return servedPart{
		Name: "the storages of binaries", Start: b.start, Reload: b.reload,
		Stop: func(context.Context) error { return open.CloseStorages(b.all) },
	}
}

func (b *storages) start(ctx context.Context, first *generation) (err error) {
	b.all, err = open.Storages(ctx, first.plan)
	first.storages = b.all
	first.binaries = open.Services(first.plan, b.all, first.set, b.metrics, nil)
	return err
}

// reload opens the storages of services that are new. Uploads in progress end with what their service is then, and an upload to a
// service that is removed ends with it.
func (b *storages) reload(ctx context.Context, before, next *generation) (part.Change, error) {
	all, opened := map[string]storage.Storage{}, map[string]storage.Storage{}
	for name, of := range next.config.Binaries {
		if known := b.all[name]; known != nil {
			all[name] = known
			continue
		}
		s, err := open.Storage(ctx, of)
		if err != nil {
			return part.Change{}, errors.Join(err, open.CloseStorages(opened))
		}
		all[name], opened[name] = s, s
	}
	removed := maps.Clone(b.all)
	maps.DeleteFunc(removed, func(name string, _ storage.Storage) bool { return all[name] != nil })
	next.storages = all
	next.binaries = open.Services(next.plan, all, next.set, b.metrics, before.binaries)
	return part.Change{
		Apply: func() {
			b.all = all
			for name, s := range before.binaries {
				if now := next.binaries[name]; now != nil {
					s.Retire(now)
				}
			}
		},
		Cancel: func() { _ = open.CloseStorages(opened) },
		Retire: func(context.Context) { _ = open.CloseStorages(removed) },
	}, nil
}
