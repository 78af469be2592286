package app

import (
	"context"
	"maps"
	"slices"
	"time"

	"belfry/pkg/app/part"
	"belfry/pkg/errs"
)

const watchInterval = time.Second

// folderWatch ends belfry when a backend fails that does not recover by itself: a folder, whose disk is
// full for instance, works again only after a restart, which the service manager then does.
type folderWatch struct {
	served *current
	fail   func(error)

	running part.Background
}

// part is the part of a process.
func (w *folderWatch) part() servedPart {
	return servedPart{Name: "the watch of folders", Start: w.start, Stop: w.running.Stop}
}

func (w *folderWatch) start(context.Context, *generation) error {
	w.running.Every(watchInterval, func(ctx context.Context) bool {
		err := w.failed(ctx)
		if err == nil || ctx.Err() != nil {
			return true
		}
		w.fail(err)
		return false
	})
	return nil
}

// failed returns the error of a backend whose folder has failed.
func (w *folderWatch) failed(ctx context.Context) error {
	now := w.served.now()
	for _, name := range slices.Sorted(maps.Keys(now.backends)) {
		if now.config.Backends[name].Type != "file" {
			continue
		}
		if err := now.backends[name].Ping(ctx); err != nil {
			return errs.Wrap(err, errs.Unavailable, "backend %s has failed", name)
		}
	}
	return nil
}
