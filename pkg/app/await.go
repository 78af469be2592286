package app

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"

	"belfry/internal/backoff"
	"belfry/pkg/app/hold"
	"belfry/pkg/errs"
)

// takeData locks the data folder. While a command holds it, awaitData does that.
func (a *App) takeData(context.Context) error {
	a.onStop("the data folder's lock", func(context.Context) error {
		if a.lock != nil {
			a.lock.Unlock()
		}
		return nil
	})
	err := a.tryData()
	var held *hold.Held
	if errors.As(err, &held) && held.Holder.Doing != hold.DoingServe {
		return nil
	}
	return err
}

func (a *App) tryData() (err error) {
	a.lock, err = hold.LockData(a.now().config.Data, hold.DoingServe)
	return err
}

// awaitData waits for a command that holds the data folder: it ends, or gives way. Until then the log and the replies of HTTP say
// for whom belfry waits. Another belfry that serves the folder is an error at once.
func (a *App) awaitData(ctx context.Context) error {
	if a.lock != nil {
		return nil
	}
	folder := a.now().config.Data
	path := filepath.Join(folder, hold.WaitFile)
	mark := flock.New(path, flock.SetPermissions(0o600))
	defer func() {
		if a.lock != nil { // nobody else can wait for a command any more
			_ = os.Remove(path)
		}
		_ = mark.Unlock()
	}()
	var known hold.Holder
	var said time.Time
	for unknown := 0; ; {
		// Several may wait. Where the file can't be made, as on a disk that is full, nobody gives way, and the command ends all the same.
		_, _ = mark.TryRLock()
		err := a.tryData()
		var held *hold.Held
		switch {
		case err == nil:
			a.front.waiting.Store(errStarting())
			if !said.IsZero() {
				a.log.Info("the data folder is free", "folder", folder)
			}
			return nil
		case !errors.As(err, &held):
			return err
		case held.Holder.MayEnd():
			unknown = 0
			if h := held.Holder; h != known || time.Since(said) >= hold.WaitLogInterval {
				known, said = h, time.Now()
				a.log.Warn("waiting for a command that holds the data folder", "command", "belfry "+h.Doing, "process", h.PID, "host", h.Host,
					"since", h.Started, "folder", folder)
				a.front.waiting.Store(errs.New(errs.Unavailable, "belfry is starting and waits for `belfry %s`, which has its data", h.Doing))
			}
		default:
			if unknown++; unknown > hold.UnknownRetries || held.Holder.Doing == hold.DoingServe {
				return err
			}
		}
		if err := backoff.Sleep(ctx, hold.LockInterval); err != nil {
			return errs.Wrap(err, errs.Canceled, "the start was interrupted while %s had the data folder", held.Holder)
		}
	}
}
