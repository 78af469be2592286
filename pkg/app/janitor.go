package app

import (
	"context"
	"log/slog"
	"time"

	"belfry/pkg/app/part"
	"belfry/pkg/store"
)

// Tombstones are purged in batches.
const (
	purgeInterval = time.Minute
	purgeAtOnce   = 10_000
)

// janitor purges tombstones whose retention is over.
type janitor struct {
	served *current
	log    *slog.Logger

	running part.Background
}

// part is the part of a process.
func (j *janitor) part() servedPart {
	return servedPart{Name: "the janitor", Stop: j.running.Stop, Start: func(context.Context, *generation) error {
		j.running.Every(purgeInterval, func(ctx context.Context) bool { j.purge(ctx); return true })
		return nil
	}}
}

func (j *janitor) purge(ctx context.Context) {
	now := j.served.now()
	before := time.Now().Add(-now.config.Tombstones)
	n, err := now.set.Purge(ctx, store.RevisionAt(before), purgeAtOnce)
	if err != nil && ctx.Err() == nil {
		j.log.Error("purging tombstones", "error", err)
	}
	if n > 0 {
		j.log.Debug("tombstones purged", "count", n)
	}
}
