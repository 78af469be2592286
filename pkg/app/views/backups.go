package views

import (
	"context"
	"time"

	"belfry/internal/schedule"
	"belfry/pkg/api/console"
	"belfry/pkg/app/open"
	"belfry/pkg/app/probe"
	"belfry/pkg/app/serving"
)

// consoleBackups returns the backups for the view System. It reads one object.
func consoleBackups(ctx context.Context, g *serving.Generation) console.Backups {
	out := console.Backups{}
	configured := g.Config.Backup
	if configured != nil {
		out.Place = configured.String()
	}
	state, err := open.BackupStates(g.Set).Get(ctx)
	if err != nil {
		out.Error = probe.Says(err)
		return out
	}
	if configured != nil && configured.Schedule != (schedule.Schedule{}) {
		out.Next = time.Now()
		if next := configured.Schedule.Next(state.Due.Local()); !state.Due.IsZero() && next.After(out.Next) {
			out.Next = next
		}
	}
	if lease := state.Live(time.Now()); lease != nil {
		out.Running = "by belfry on " + lease.Host + " since " + lease.Began.Format("2006-01-02 15:04:05") + " UTC"
	}
	out.Recent = state.Recent
	return out
}
