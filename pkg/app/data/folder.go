package data

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"

	"belfry/internal/backoff"
	"belfry/pkg/app/hold"
	"belfry/pkg/app/serving"
	"belfry/pkg/errs"
)

// Folder is the lock of the data folder.
type Folder struct {
	Startup *serving.Startup
	Log     *slog.Logger

	lock *hold.DataLock // nil until the process holds it
}

// LockPart is the part that locks the folder. While a command holds it, WaitPart locks it.
func (d *Folder) LockPart() serving.Part {
	return serving.Part{
		Name: "the lock of the data folder",
		Start: func(_ context.Context, first *serving.Generation) error {
			err := d.take(first.Config.Data)
			var held *hold.Held
			if errors.As(err, &held) && held.Holder.Doing != hold.DoingServe {
				return nil
			}
			return err
		},
		Stop: func(context.Context) error {
			if d.lock != nil {
				d.lock.Unlock()
			}
			return nil
		},
	}
}

// WaitPart is the part that waits for a command that holds the folder.
func (d *Folder) WaitPart() serving.Part {
	return serving.Part{
		Name:  "the wait for the data folder",
		Start: func(ctx context.Context, first *serving.Generation) error { return d.await(ctx, first.Config.Data) },
	}
}

// Publish lets commands find the process at an address, with a token.
func (d *Folder) Publish(address, token string) error { return d.lock.Publish(address, token) }

func (d *Folder) take(folder string) (err error) {
	d.lock, err = hold.LockData(folder, hold.DoingServe)
	return err
}

// await waits until a command that holds the data folder ends or yields. Until then, the log and HTTP replies name the
// command. If another belfry serves the folder, await returns an error at once.
func (d *Folder) await(ctx context.Context, folder string) error {
	if d.lock != nil {
		return nil
	}
	path := filepath.Join(folder, hold.WaitFile)
	mark := flock.New(path, flock.SetPermissions(0o600))
	defer func() {
		if d.lock != nil { // the lock is already held: there is no command to wait for
			_ = os.Remove(path)
		}
		_ = mark.Unlock()
	}()
	var known hold.Holder
	var said time.Time
	for unknown := 0; ; {
		// Several processes may wait. If the file can't be created, as on a full disk, the command does not yield, but
		// still ends.
		_, _ = mark.TryRLock()
		err := d.take(folder)
		var held *hold.Held
		switch {
		case err == nil:
			d.Startup.Resume()
			if !said.IsZero() {
				d.Log.Info("the data folder is free", "folder", folder)
			}
			return nil
		case !errors.As(err, &held):
			return err
		case held.Holder.MayEnd():
			unknown = 0
			if h := held.Holder; h != known || time.Since(said) >= hold.WaitLogInterval {
				known, said = h, time.Now()
				d.Log.Warn("waiting for a command that holds the data folder", "command", "belfry "+h.Doing,
					"process", h.PID, "host", h.Host, "since", h.Started, "folder", folder)
				d.Startup.Wait("`belfry " + h.Doing + "`, which has its data")
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
