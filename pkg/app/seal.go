package app

import (
	"context"

	"belfry/config"
	"belfry/pkg/app/command"
	"belfry/pkg/store"
)

// openSealer reads the keys for sealing once their store is available. All processes that share the stores have
// the same.
func (s *stores) openSealer(ctx context.Context, first *generation, keys *store.Store) error {
	err := s.backend(ctx, first.config, first.config.Stores[config.SealKeyStore].Backend, func() (err error) {
		first.sealer, err = command.LoadSealer(ctx, keys)
		return err
	})
	if err == nil {
		s.followSealKeys(first, keys)
	}
	return err
}

// followSealKeys reads the keys again from time to time: another process may have added one.
func (s *stores) followSealKeys(first *generation, keys *store.Store) {
	s.running.Every(command.SealKeysInterval, func(ctx context.Context) bool {
		if err := command.ReadSealKeys(ctx, keys, first.sealer); err != nil && ctx.Err() == nil {
			s.log.Error("the keys for sealing can't be read; the ones read before are used", "error", err)
		}
		return true
	})
}
