package app

import (
	"context"

	"belfry/config"
	"belfry/pkg/app/command"
	"belfry/pkg/store"
)

// openSealer reads the keys for sealing once their store is available. All processes that share the stores have
// the same.
func (a *App) openSealer(ctx context.Context, s *store.Store) error {
	err := a.awaitBackend(ctx, a.now().config.Stores[config.SealKeyStore].Backend, func() (err error) {
		a.sealer, err = command.LoadSealer(ctx, s)
		return err
	})
	if err == nil {
		a.followSealKeys(s)
	}
	return err
}

// followSealKeys reads the keys again from time to time: another process may have added one.
func (a *App) followSealKeys(s *store.Store) {
	a.every(command.SealKeysInterval, "the keys for sealing", func(ctx context.Context) bool {
		if err := command.ReadSealKeys(ctx, s, a.sealer); err != nil && ctx.Err() == nil {
			a.log.Error("the keys for sealing can't be read; the ones read before are used", "error", err)
		}
		return true
	})
}
