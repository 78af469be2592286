package data

import (
	"context"

	"belfry/config"
	"belfry/pkg/app/hold"
	"belfry/pkg/app/open"
	"belfry/pkg/app/serving"
	"belfry/pkg/operations/backup"
)

// RestoreCheck is the part that fails if the stores have a part of a backup. It waits for their backend.
func RestoreCheck(wait Awaiter) serving.Part {
	return serving.Part{Name: "the check of a restore", Start: func(ctx context.Context, first *serving.Generation) error {
		var state backup.State
		err := wait.Await(ctx, first.Config, first.Config.Stores[config.PositionStore].Backend, func() (err error) {
			state, err = open.BackupStates(first.Set).Get(ctx)
			return err
		})
		if err != nil {
			return err
		}
		return hold.ErrIncomplete(state)
	}}
}
