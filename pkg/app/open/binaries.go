package open

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"belfry/config"
	"belfry/pkg/app/certificate"
	"belfry/pkg/app/plan"
	"belfry/pkg/binary"
	storage "belfry/pkg/binary/driver"
	"belfry/pkg/binary/filestorage"
	"belfry/pkg/binary/s3storage"
	"belfry/pkg/store"
)

// Storage opens the storage of one binary service.
func Storage(ctx context.Context, b *config.Binary) (storage.Storage, error) {
	if b.S3 != nil {
		roots, err := certificate.Trusted(b.S3.CA)
		if err != nil {
			return nil, err
		}
		return s3storage.Open(ctx, s3storage.Options{
			Bucket: b.S3.Bucket, Region: b.S3.Region, Endpoint: b.S3.Endpoint, Prefix: b.S3.Prefix, RootCAs: roots,
		})
	}
	return filestorage.Open(b.File.Folder)
}

// Storages opens the storages of all binary services.
func Storages(ctx context.Context, p *plan.Plan) (map[string]storage.Storage, error) {
	all := map[string]storage.Storage{}
	for _, name := range slices.Sorted(maps.Keys(p.Config.Binaries)) {
		s, err := Storage(ctx, p.Config.Binaries[name])
		if err != nil {
			return nil, errors.Join(fmt.Errorf("binaries.%s: %w", name, err), CloseStorages(all))
		}
		all[name] = s
	}
	return all, nil
}

// CloseStorages closes storages.
func CloseStorages(all map[string]storage.Storage) error {
	return closeAll(all, "the storage of binaries.")
}

// Services returns the binary services over open storages and stores; metrics may be nil, and before are the services
// that they replace, if any. serving is Serving of the services, by name; nil: they are never replaced.
func Services(p *plan.Plan, storages map[string]storage.Storage, set *store.Set, metrics prometheus.Registerer,
	before map[string]*binary.Service,
	serving func(name string) (*binary.Service, func())) map[string]*binary.Service {
	all := map[string]*binary.Service{}
	for name, b := range p.Config.Binaries {
		var current func() (*binary.Service, func())
		if serving != nil {
			current = func() (*binary.Service, func()) { return serving(name) }
		}
		all[name] = binary.New(binary.Options{
			Name: name, Set: set, Contents: set.Store(config.ContentStore), Storage: storages[name],
			Properties: b.Places(), Limits: limitsOf(b), Types: b.Types, MaxSize: b.MaxSize, Grace: b.Grace,
			Quotas: set.Store(config.QuotaStore), Quota: binary.Quota(b.Quota), Registry: metrics,
			Previous: before[name], Serving: current,
		})
	}
	return all
}

// limitsOf returns the limits of files in single properties, by store.
func limitsOf(b *config.Binary) map[string]map[string]binary.Limits {
	all := map[string]map[string]binary.Limits{}
	for store, properties := range b.Map {
		all[store] = map[string]binary.Limits{}
		for name, p := range properties.Each {
			all[store][name] = binary.Limits{MaxSize: p.MaxSize, Types: p.Types}
		}
	}
	return all
}

// InOrder returns services in the order of their names.
func InOrder(all map[string]*binary.Service) []*binary.Service {
	var list []*binary.Service
	for _, name := range slices.Sorted(maps.Keys(all)) {
		list = append(list, all[name])
	}
	return list
}
