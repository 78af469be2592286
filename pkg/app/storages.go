package app

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"belfry/pkg/api/files"
	"belfry/pkg/app/open"
	"belfry/pkg/app/part"
	storage "belfry/pkg/binary/driver"
)

// storages opens the storages of binary services.
type storages struct {
	registry prometheus.Registerer
	all      map[string]storage.Storage
}

func (b *storages) part() part.Part[*serving] {
	return part.Part[*serving]{
		Name: "the storages of binaries", Start: b.start, Reload: b.reload,
		Stop: func(context.Context) error { return open.CloseStorages(b.all) },
	}
}

func (b *storages) start(ctx context.Context, first *serving) (err error) {
	b.all, err = open.Storages(ctx, first.plan)
	first.storages = b.all
	first.binaries = open.Services(first.plan, b.all, first.set, b.registry, nil)
	return err
}

// reload opens the storages of services that are new. Uploads in progress end with what their service is then, and an upload to a
// service that is removed ends with it.
func (b *storages) reload(ctx context.Context, before, next *serving) (part.Change, error) {
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
	next.binaries = open.Services(next.plan, all, next.set, b.registry, before.binaries)
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

func (a *serving) apiFiles() []files.Options {
	var all []files.Options
	for _, name := range slices.Sorted(maps.Keys(a.binaries)) {
		b := a.config.Binaries[name]
		mounted := files.Options{Service: a.binaries[name], Memory: a.uploads, URL: b.URL, Restrict: files.Restrict(b.Restrict)}
		if b.S3 != nil {
			mounted.Presign = b.S3.Presign
		}
		all = append(all, mounted)
	}
	return all
}
