package data

import (
	"context"
	"errors"
	"maps"

	"github.com/prometheus/client_golang/prometheus"

	"belfry/pkg/app/open"
	"belfry/pkg/app/part"
	"belfry/pkg/app/serving"
	"belfry/pkg/binary"
	storage "belfry/pkg/binary/driver"
)

// Storages opens the storages of binary services.
type Storages struct {
	Served  *serving.Current
	Metrics prometheus.Registerer

	all map[string]storage.Storage
}

// Part returns the functions that start, reload and stop it.
func (b *Storages) Part() serving.Part {
	return serving.Part{
		Name: "the storages of binaries", Start: b.start, Reload: b.reload,
		Stop: func(context.Context) error { return open.CloseStorages(b.all) },
	}
}

func (b *Storages) start(ctx context.Context, first *serving.Generation) (err error) {
	b.all, err = open.Storages(ctx, first.Plan)
	first.Storages = b.all
	first.Binaries = open.Services(first.Plan, b.all, first.Set, b.Metrics, nil, b.serving)
	return err
}

// serving returns the current service with a name, which writes with the rules and indexes of the configuration that is
// served. A later reload waits for it, but not for uploads that still arrive.
func (b *Storages) serving(name string) (*binary.Service, func()) {
	now, done := b.Served.Use()
	return now.Binaries[name], done
}

// reload opens the storages of new services. Uploads in progress continue with the new settings of their service; an
// upload to a removed service fails.
func (b *Storages) reload(ctx context.Context, before, next *serving.Generation) (part.Change, error) {
	all, opened := map[string]storage.Storage{}, map[string]storage.Storage{}
	for name, of := range next.Config.Binaries {
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
	next.Storages = all
	next.Binaries = open.Services(next.Plan, all, next.Set, b.Metrics, before.Binaries, b.serving)
	return part.Change{
		Apply:  func() { b.all = all },
		Cancel: func() { _ = open.CloseStorages(opened) },
		Retire: func(context.Context) { _ = open.CloseStorages(removed) },
	}, nil
}
