package data

import (
	"context"
	"maps"
	"slices"
	"time"

	"belfry/pkg/app/part"
	"belfry/pkg/app/serving"
	"belfry/pkg/errs"
)

const watchInterval = time.Second

// FolderWatch stops belfry when a backend fails that does not recover by itself. A folder on a full disk, for example,
// works again only after a restart, which is left to the service manager.
type FolderWatch struct {
	Served *serving.Current
	Fail   func(error)

	running part.Background
}

// Part returns the functions that start and stop it.
func (w *FolderWatch) Part() serving.Part {
	return serving.Part{Name: "the watch of folders", Start: w.start, Stop: w.running.Stop}
}

func (w *FolderWatch) start(context.Context, *serving.Generation) error {
	w.running.Every(watchInterval, func(ctx context.Context) bool {
		err := w.failed(ctx)
		if err == nil || ctx.Err() != nil {
			return true
		}
		w.Fail(err)
		return false
	})
	return nil
}

// failed returns the error of a backend whose folder has failed.
func (w *FolderWatch) failed(ctx context.Context) error {
	now := w.Served.Now()
	for _, name := range slices.Sorted(maps.Keys(now.Backends)) {
		if now.Config.Backends[name].Type != "file" {
			continue
		}
		if err := now.Backends[name].Ping(ctx); err != nil {
			return errs.Wrap(err, errs.Unavailable, "backend %s has failed", name)
		}
	}
	return nil
}
