package open

import (
	"context"
	"errors"
	"maps"
	"os"
	"slices"

	"belfry/config"
	"belfry/pkg/app/hold"
	"belfry/pkg/app/plan"
	"belfry/pkg/errs"
	"belfry/pkg/operations/backup"
	"belfry/pkg/store"
)

// BackupStates returns the place of the stored state of backups.
func BackupStates(set *store.Set) *backup.States {
	return backup.NewStates(set.Store(config.PositionStore), nil)
}

// WithStores opens the stores, which need not exist yet, and calls direct. If a process with a control server holds the
// data folder, it calls served with that process instead.
func WithStores(ctx context.Context, p *plan.Plan, doing string, direct func(*store.Set) error,
	served func(hold.Holder) error) error {
	lock, err := hold.LockData(p.Config.Data, doing)
	var held *hold.Held
	if errors.As(err, &held) && held.Holder.Control != "" {
		return served(held.Holder)
	}
	if err != nil {
		return err
	}
	defer lock.Unlock()
	backends, err := Backends(ctx, p, BackendOnce)
	if err != nil {
		return err
	}
	p.Opened = backends
	set, err := Stores(ctx, p, backends, Opener(p), func(*store.Options) {})
	if err == nil {
		err = CheckStoresComplete(ctx, set.Store(config.PositionStore))
	}
	if err == nil {
		err = direct(set)
	}
	return errors.Join(err, CloseBackends(backends))
}

// HasData returns an error if the folder of a backend is missing. A command that reads would otherwise
// succeed without data. The error gives the reason, such as a restore that has not created the folder yet.
func HasData(p *plan.Plan) error {
	var folders []string
	if !p.Shared() {
		folders = append(folders, p.Config.Data)
	}
	for _, name := range slices.Sorted(maps.Keys(p.Config.Stores)) {
		if f := p.Config.Backends[p.Config.Stores[name].Backend].File; f != nil {
			folders = append(folders, f.Folder)
		}
	}
	for _, folder := range folders {
		if _, err := os.Stat(folder); err != nil {
			if why := whyNoData(p); why != nil {
				return why
			}
			return errs.Wrap(err, errs.Invalid, "the data folder has no data yet; check --config and --data")
		}
	}
	return nil
}

// whyNoData returns an error that names the holder of a data folder without data, or an interrupted restore; else nil.
func whyNoData(p *plan.Plan) error {
	switch holder, err := hold.HolderOf(p.Config.Data); {
	case err != nil:
		return err
	case holder != nil:
		return &hold.Held{Folder: p.Config.Data, Holder: *holder}
	}
	return hold.CheckComplete(p.Config.Data)
}

// CheckStoresComplete returns an error if the store of positions records that the stores have only a part of a backup.
// In a database, every process with any data folder reads that record.
func CheckStoresComplete(ctx context.Context, positions *store.Store) error {
	state, err := backup.NewStates(positions, nil).Get(ctx)
	if err != nil {
		return err
	}
	return hold.ErrIncomplete(state)
}
