package app

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"

	"belfry/internal/backoff"
	"belfry/pkg/errs"
)

// doingServe is what the lock file of a belfry that serves says. Whoever does anything else is a command, which ends.
const doingServe = "serve"

// waitFile is in the data folder while a belfry waits for a command that holds the folder, and is locked by it: whoever can't
// lock the file knows that somebody waits, and the operating system releases the lock if that one ends.
const waitFile = "belfry.waiting"

const (
	lockInterval   = 100 * time.Millisecond // between attempts to lock a folder
	unknownRetries = 10                     // of a lock whose file does not say who holds it: its holder may be about to write that
)

// Shorter in tests.
var (
	waitLogInterval = 10 * time.Second // how often a belfry that waits says for whom
	giveWayAfter    = 30 * time.Second // how long a backup goes on while a belfry waits for it
)

// mayEnd reports whether a folder is worth waiting for: whoever serves it does not end by itself.
func (h Holder) mayEnd() bool { return h.PID != 0 && h.Doing != doingServe }

// takeData locks the data folder. While a command holds it, awaitData does that.
func (a *App) takeData(context.Context) error {
	a.onStop("the data folder's lock", func(context.Context) error {
		if a.lock != nil {
			a.lock.Unlock()
		}
		return nil
	})
	err := a.tryData()
	var held *Held
	if errors.As(err, &held) && held.Holder.Doing != doingServe {
		return nil
	}
	return err
}

func (a *App) tryData() (err error) {
	a.lock, err = LockData(a.now().config.Data, doingServe)
	return err
}

// awaitData waits for a command that holds the data folder: it ends, or gives way. Until then the log and the replies of HTTP say
// for whom belfry waits. Another belfry that serves the folder is an error at once.
func (a *App) awaitData(ctx context.Context) error {
	if a.lock != nil {
		return nil
	}
	folder := a.now().config.Data
	path := filepath.Join(folder, waitFile)
	mark := flock.New(path, flock.SetPermissions(0o600))
	defer func() {
		if a.lock != nil { // nobody else can wait for a command any more
			_ = os.Remove(path)
		}
		_ = mark.Unlock()
	}()
	var known Holder
	var said time.Time
	for unknown := 0; ; {
		// Several may wait. Where the file can't be made, as on a disk that is full, nobody gives way, and the command ends all the same.
		_, _ = mark.TryRLock()
		err := a.tryData()
		var held *Held
		switch {
		case err == nil:
			a.front.waiting.Store(errStarting())
			if !said.IsZero() {
				a.log.Info("the data folder is free", "folder", folder)
			}
			return nil
		case !errors.As(err, &held):
			return err
		case held.Holder.mayEnd():
			unknown = 0
			if h := held.Holder; h != known || time.Since(said) >= waitLogInterval {
				known, said = h, time.Now()
				a.log.Warn("waiting for a command that holds the data folder", "command", "belfry "+h.Doing, "process", h.PID, "host", h.Host,
					"since", h.Started, "folder", folder)
				a.front.waiting.Store(errs.New(errs.Unavailable, "belfry is starting and waits for `belfry %s`, which has its data", h.Doing))
			}
		default:
			if unknown++; unknown > unknownRetries || held.Holder.Doing == doingServe {
				return err
			}
		}
		if err := backoff.Sleep(ctx, lockInterval); err != nil {
			return errs.Wrap(err, errs.Canceled, "the start was interrupted while %s had the data folder", held.Holder)
		}
	}
}

// awaited reports whether somebody waits for a data folder.
func awaited(folder string) bool {
	probe := flock.New(filepath.Join(folder, waitFile), flock.SetFlag(os.O_RDWR))
	free, err := probe.TryLock()
	if free {
		_ = probe.Unlock()
	}
	return err == nil && !free // an error: there is no such file, or none that can be asked
}

// errGaveWay is why a backup ends that a belfry has waited for.
var errGaveWay = errs.New(errs.Unavailable, "the backup was interrupted for `belfry serve`, which waits for the data folder: run `belfry backup` again, which does not store again what is stored, and is made by that process")

// givingWay returns a context that ends, with errGaveWay as its cause, once somebody has waited for a data folder for a time. done
// must be called.
func givingWay(ctx context.Context, folder string) (giving context.Context, done func()) {
	giving, cancel := context.WithCancelCause(ctx)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		var since time.Time
		for backoff.Sleep(giving, lockInterval) == nil {
			switch {
			case !awaited(folder):
				since = time.Time{}
			case since.IsZero():
				since = time.Now()
			}
			if !since.IsZero() && time.Since(since) >= giveWayAfter {
				cancel(errGaveWay)
			}
		}
	}()
	return giving, func() {
		cancel(nil)
		<-watched
	}
}
