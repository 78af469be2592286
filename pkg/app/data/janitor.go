package data

import (
	"context"
	"log/slog"
	"time"

	"belfry/pkg/app/part"
	"belfry/pkg/app/serving"
	"belfry/pkg/store"
)

// Tombstones are purged in batches.
const (
	purgeInterval = time.Minute
	purgeAtOnce   = 10_000
)

// Janitor purges tombstones whose retention is over.
type Janitor struct {
	Served *serving.Current
	Log    *slog.Logger

	running part.Background
}

// Part returns the functions that start and stop it.
func (j *Janitor) Part() serving.Part {
	return serving.Part{Name: "the janitor", Stop: j.running.Stop,
		Start: func(context.Context, *serving.Generation) error {
			j.running.Every(purgeInterval, func(ctx context.Context) bool { j.purge(ctx); return true })
			return nil
		}}
}

func (j *Janitor) purge(ctx context.Context) {
	now := j.Served.Now()
	before := time.Now().Add(-now.Config.Tombstones)
	n, err := now.Set.Purge(ctx, store.RevisionAt(before), purgeAtOnce)
	if err != nil && ctx.Err() == nil {
		j.Log.Error("purging tombstones", "error", err)
	}
	if n > 0 {
		j.Log.Debug("tombstones purged", "count", n)
	}
}
