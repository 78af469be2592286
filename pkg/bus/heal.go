package bus

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"belfry/pkg/backoff"
	"belfry/pkg/errs"
)

const (
	healLook = time.Second // between looks at the streams
	healMax  = time.Minute // between two starts of a server that does not get well
	healRoom = 1 << 20     // bytes that its folder must take before it is started anew
)

// heal looks after the embedded server. A stream that could not be written
// once, because the disk was full for instance, takes nothing any more, whatever
// becomes of the disk: only a server that starts anew opens it again. So that is
// done as soon as its folder can be written. What was to be published waits.
func (b *Bus) heal(ctx context.Context) {
	var began time.Time // the latest start
	rest := healLook    // until there may be another
	for backoff.Sleep(ctx, healLook) == nil {
		folder, harm := b.embedded.harm()
		if harm == nil {
			if b.harm.Swap(nil) != nil {
				b.log.Info("the embedded bus can be written again")
			}
			if time.Since(began) > healMax {
				rest = healLook
			}
			continue
		}
		if b.harm.Swap(&harm) == nil {
			b.log.Error("the embedded bus can't be written; it is started anew once its folder takes something", "folder", folder, "error", harm)
		}
		if time.Since(began) < rest || !writable(folder) {
			continue
		}
		began, rest = time.Now(), min(2*rest, healMax)
		if b.StopServer() != nil || b.startAnew(ctx) != nil {
			return
		}
	}
}

// startAnew starts the embedded server until it runs. It reports ctx's end.
func (b *Bus) startAnew(ctx context.Context) error {
	for wait := healLook; ; wait = min(2*wait, healMax) {
		err := b.StartServer(ctx)
		if err == nil || ctx.Err() != nil {
			return ctx.Err()
		}
		b.log.Error("the embedded bus can't be started anew; trying again", "error", err, "in", wait)
		if err := backoff.Sleep(ctx, wait); err != nil {
			return err
		}
	}
}

// harm is where the server has its data, and why a stream of it takes nothing any
// more: nil when all do, or the server does not run.
func (e *embedded) harm() (folder string, err error) {
	r := e.current.Load()
	if r == nil {
		return "", nil
	}
	for _, e := range r.server.Healthz(&server.HealthzOptions{Details: true}).Errors {
		if e.Type == server.HealthzErrorStream && strings.Contains(e.Error, "write error") {
			return filepath.Dir(r.folder), errors.New(e.Error)
		}
	}
	return "", nil
}

// writable reports whether a folder takes a file with something in it.
func writable(folder string) bool {
	f, err := os.CreateTemp(folder, "room-")
	if err != nil {
		return false
	}
	_, err = f.Write(make([]byte, healRoom))
	return errors.Join(err, f.Sync(), f.Close(), os.Remove(f.Name())) == nil
}

// unharmed reports a server that can't write.
func (b *Bus) unharmed() error {
	if harm := b.harm.Load(); harm != nil {
		return errs.Wrap(*harm, errs.Unavailable, "the embedded bus can't be written: is its disk full?")
	}
	return nil
}
