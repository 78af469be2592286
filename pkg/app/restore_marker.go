package app

import (
	"context"

	"belfry/config"
	"belfry/pkg/app/hold"
	"belfry/pkg/app/open"
	"belfry/pkg/operations/backup"
)

// restoreCheck is the part that fails if the stores have a part of a backup. It waits for their backend.
func restoreCheck(wait awaiter) servedPart {
	return servedPart{Name: "the check of a restore", Start: func(ctx context.Context, first *generation) error {
		var state backup.State
		err := wait.backend(ctx, first.config, first.config.Stores[config.PositionStore].Backend, func() (err error) {
			state, err = open.BackupStates(first.set).Get(ctx)
			return err
		})
		if err != nil {
			return err
		}
		return hold.ErrIncomplete(state)
	}}
}
