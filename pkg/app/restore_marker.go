package app

import (
	"context"

	"belfry/config"
	"belfry/pkg/app/hold"
	"belfry/pkg/app/open"
	"belfry/pkg/operations/backup"
)

// checkRestored returns an error if the stores have a part of a backup. It waits for their backend.
func (a *App) checkRestored(ctx context.Context) (err error) {
	var state backup.State
	now := a.now()
	err = a.awaitBackend(ctx, now.config.Stores[config.PositionStore].Backend, func() (err error) {
		state, err = open.BackupStates(now.set).Get(ctx)
		return err
	})
	if err != nil {
		return err
	}
	return hold.ErrIncomplete(state)
}
