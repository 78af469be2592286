package app

import (
	"context"
	"time"

	"belfry/internal/schedule"
	"belfry/pkg/api/console"
	"belfry/pkg/app/open"
)

// consoleBackups returns what the view System shows of backups: one object is read.
func (a *serving) consoleBackups(ctx context.Context) console.Backups {
	out := console.Backups{}
	configured := a.config.Backup
	if configured != nil {
		out.Place = configured.String()
	}
	state, err := open.BackupStates(a.set).Get(ctx)
	if err != nil {
		out.Error = saysOf(err)
		return out
	}
	if configured != nil && configured.Schedule != (schedule.Schedule{}) {
		if out.Next = time.Now(); !state.Due.IsZero() {
			out.Next = later(configured.Schedule.Next(state.Due.Local()), out.Next)
		}
	}
	if lease := state.Live(time.Now()); lease != nil {
		out.Running = "by belfry on " + lease.Host + " since " + lease.Began.Format("2006-01-02 15:04:05") + " UTC"
	}
	for _, b := range state.Recent {
		out.Recent = append(out.Recent, console.Backup{
			ID: b.ID, Began: b.Began, Ended: b.Ended, Scheduled: b.Scheduled, Size: b.Size, Added: b.Added, Problems: b.Problems, Error: b.Error,
		})
	}
	return out
}
