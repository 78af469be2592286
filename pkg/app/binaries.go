package app

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"belfry/config"
	"belfry/listeners/sweep"
	"belfry/pkg/api/files"
	"belfry/pkg/app/certificate"
	"belfry/pkg/binary"
	storage "belfry/pkg/binary/driver"
	"belfry/pkg/binary/filestorage"
	"belfry/pkg/binary/s3storage"
	"belfry/pkg/listener"
	"belfry/pkg/store"
)

// placeBinaries sets which properties of the stores hold binaries, and indexes objects by the binaries
// that they hold.
func (p *plan) placeBinaries() {
	for i := range p.stores {
		o := &p.stores[i]
		if o.Name == config.ContentStore {
			continue
		}
		o.IndexBinaries = len(p.config.Binaries) > 0
		for _, name := range slices.Sorted(maps.Keys(p.config.Binaries)) {
			o.Binaries = append(o.Binaries, p.config.Binaries[name].Map[o.Name]...)
		}
	}
}

func openStorage(ctx context.Context, b *config.Binary) (storage.Storage, error) {
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

// openStorages opens the storages of all binary services.
func openStorages(ctx context.Context, p *plan) (map[string]storage.Storage, error) {
	all := map[string]storage.Storage{}
	for _, name := range slices.Sorted(maps.Keys(p.config.Binaries)) {
		s, err := openStorage(ctx, p.config.Binaries[name])
		if err != nil {
			return nil, errors.Join(fmt.Errorf("binaries.%s: %w", name, err), closeStorages(all))
		}
		all[name] = s
	}
	return all, nil
}

func closeStorages(all map[string]storage.Storage) error {
	return closeAll(all, "the storage of binaries.")
}

// services returns the binary services over open storages and stores; metrics may be nil, and before are those that
// they replace, if any.
func services(p *plan, storages map[string]storage.Storage, set *store.Set, metrics prometheus.Registerer, before map[string]*binary.Service) map[string]*binary.Service {
	all := map[string]*binary.Service{}
	for name, b := range p.config.Binaries {
		all[name] = binary.New(binary.Options{
			Name: name, Set: set, Contents: set.Store(config.ContentStore), Storage: storages[name],
			Properties: b.Map, MaxSize: b.MaxSize, Grace: b.Grace,
			Quotas: set.Store(config.QuotaStore), Quota: binary.Quota(b.Quota), Registry: metrics, Previous: before[name],
		})
	}
	return all
}

func inOrder(all map[string]*binary.Service) []*binary.Service {
	var list []*binary.Service
	for _, name := range slices.Sorted(maps.Keys(all)) {
		list = append(list, all[name])
	}
	return list
}

func (a *serving) openStorages(ctx context.Context) error {
	storages, err := openStorages(ctx, a.plan)
	if err != nil {
		return err
	}
	a.storages, a.binaries = storages, services(a.plan, storages, a.set, a.registry, nil)
	a.onStop("the storages of binaries", func(context.Context) error { return closeStorages(storages) })
	return nil
}

const sweepConcurrency = 16

// startSweep starts the sweeper, which deletes contents that no object references.
func (a *serving) startSweep(context.Context) error {
	if len(a.binaries) == 0 {
		return nil
	}
	w, err := sweep.NewWorker(inOrder(a.binaries), a.log)
	if err != nil {
		return err
	}
	a.sweeper = w
	spec := a.plan.sweepSpec()
	spec.Handler = func(ctx context.Context, e *listener.Event) error {
		now, done := a.use()
		defer done()
		return now.sweeper.Handle(ctx, &e.Envelope)
	}
	a.startListeners(spec)
	grace := time.Duration(1<<63 - 1)
	for _, b := range a.config.Binaries {
		grace = min(grace, b.Grace)
	}
	again := func(what string, do func(*sweep.Worker, context.Context) error) func(context.Context) bool {
		return func(ctx context.Context) bool {
			now, done := a.use()
			defer done()
			if err := do(now.sweeper, ctx); err != nil && ctx.Err() == nil {
				a.log.Error(what, "error", err)
			}
			return true
		}
	}
	a.every(min(sweep.DueInterval, grace), "the sweeping of contents", again("sweeping contents", (*sweep.Worker).SweepDue))
	check := again("checking contents without records", (*sweep.Worker).SweepAll)
	// Also soon after each start, since a belfry that often restarts would never reach the long interval,
	// and a crash may have left the content of an upload.
	a.every(min(sweep.DueInterval, grace), "the first check of all contents", func(ctx context.Context) bool {
		check(ctx)
		return false
	})
	a.every(min(sweep.FullInterval, 10*grace), "the check of all contents", check)
	a.every(cleanInterval, "the removal of old quotas", again("removing old records of quotas", func(_ *sweep.Worker, ctx context.Context) error { return a.cleanQuotas(ctx) }))
	return nil
}

func (a *App) cleanQuotas(ctx context.Context) error {
	for _, s := range inOrder(a.now().binaries) {
		for n := cleanAtOnce; n >= cleanAtOnce; {
			var err error
			if n, err = s.DeleteExpired(ctx, cleanAtOnce); err != nil {
				return err
			}
		}
	}
	return nil
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
