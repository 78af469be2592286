package data

import (
	"context"

	"belfry/config"
	"belfry/pkg/app/command"
	"belfry/pkg/app/serving"
	"belfry/pkg/store"
)

// openSealer reads the keys for sealing once their store is available. All processes that share the stores have the
// same keys.
func (s *Stores) openSealer(ctx context.Context, first *serving.Generation, keys *store.Store) error {
	err := s.Await(ctx, first.Config, first.Config.Stores[config.SealKeyStore].Backend, func() (err error) {
		first.Sealer, err = command.LoadSealer(ctx, keys)
		return err
	})
	if err == nil {
		s.followSealKeys(first, keys)
	}
	return err
}

// followSealKeys reads the keys again from time to time: another process may have added one.
func (s *Stores) followSealKeys(first *serving.Generation, keys *store.Store) {
	s.running.Every(command.SealKeysInterval, func(ctx context.Context) bool {
		if err := command.ReadSealKeys(ctx, keys, first.Sealer); err != nil && ctx.Err() == nil {
			s.Log.Error("the keys for sealing can't be read; the ones read before are used", "error", err)
		}
		return true
	})
}
