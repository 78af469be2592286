package hold

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"

	"belfry/internal/backoff"
	"belfry/pkg/errs"
)

// WaitFile is in the data folder while a belfry waits for a command that holds the folder. The waiting belfry locks it,
// so the command knows of the wait if it can't lock the file. The operating system releases the lock if that belfry
// ends.
const WaitFile = "belfry.waiting"

// How often a lock is tried.
const (
	LockInterval = 100 * time.Millisecond // between attempts to lock a folder
	// of a lock whose file does not name its holder, which may be about to write it
	UnknownRetries = 10
)

// Shorter in tests.
var (
	WaitLogInterval = 10 * time.Second // how often a waiting belfry logs the command that it waits for
	GiveWayAfter    = 30 * time.Second // how long a backup continues while a belfry waits for it
)

// Awaited reports whether a belfry waits for a data folder.
func Awaited(folder string) bool {
	probe := flock.New(filepath.Join(folder, WaitFile), flock.SetFlag(os.O_RDWR))
	free, err := probe.TryLock()
	if free {
		_ = probe.Unlock()
	}
	return err == nil && !free // an error: the file does not exist, or can't be locked
}

// ErrGaveWay is the error of a backup that ended because a belfry waited for it.
var ErrGaveWay = errs.New(errs.Unavailable, "the backup was interrupted for `belfry serve`, which waits for the data "+
	"folder: run `belfry backup` again; the serving process then makes the backup, and reuses the parts that are "+
	"already stored")

// GivingWay returns a context that ends, with errGaveWay as its cause, once a belfry has waited for a data folder for a
// time. done must be called.
func GivingWay(ctx context.Context, folder string) (giving context.Context, done func()) {
	giving, cancel := context.WithCancelCause(ctx)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		var since time.Time
		for backoff.Sleep(giving, LockInterval) == nil {
			switch {
			case !Awaited(folder):
				since = time.Time{}
			case since.IsZero():
				since = time.Now()
			}
			if !since.IsZero() && time.Since(since) >= GiveWayAfter {
				cancel(ErrGaveWay)
			}
		}
	}()
	return giving, func() {
		cancel(nil)
		<-watched
	}
}
