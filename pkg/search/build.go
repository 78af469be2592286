package search

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"belfry/internal/backoff"
	"belfry/pkg/bus/eventlog"
	"belfry/pkg/errs"
	"belfry/pkg/store/driver"
)

// built is what a build has made.
type built struct {
	index *textIndex
	began time.Time
	err   error
}

// mayBuild reports whether a build may begin: none is in progress, and none has just failed.
func (x *storeIndex) mayBuild() bool { return x.built == nil && time.Now().After(x.retry) }

// build begins to make an index of what the store has, which takes the place of the current one once it is complete and on disk. That
// one answers until then, and stays if the process ends.
func (x *storeIndex) build(ctx context.Context, js jetstream.JetStream) {
	if !x.mayBuild() {
		return
	}
	done := make(chan built, 1)
	x.built = done
	x.building.Go(func() {
		b := built{began: time.Now()}
		b.err = caught(func() (err error) {
			b.index, err = x.buildNext(ctx, js)
			return err
		})
		done <- b
	})
}

// take has what a build has made take the place of the current index, and reports whether it does. It waits for the build, or until one may
// begin, if it is to.
func (x *storeIndex) take(ctx context.Context, wait bool) bool {
	switch {
	case x.built == nil && wait:
		_ = backoff.Sleep(ctx, time.Until(x.retry)) // ends with ctx
		return false
	case x.built == nil:
		return false
	}
	var b built
	if wait {
		b = <-x.built // ends with ctx
	} else {
		select {
		case b = <-x.built:
		default:
			return false
		}
	}
	x.built = nil
	switch {
	case b.err == nil && ctx.Err() != nil:
		b.index.close() // the next start finds it
		return false
	case ctx.Err() != nil:
		return false
	case b.err != nil:
		x.retry = time.Now().Add(checkInterval)
		if x.failed != b.err.Error() {
			x.failed = b.err.Error()
			x.log.Error("the search index can't be built; retrying", "error", b.err)
		}
		return false
	}
	x.failed = ""
	if before, of := x.current.Load(), x.of.Load().Settings; !wait && before != nil && before.is(of) && !b.index.is(of) { // a reload was taken back meanwhile
		b.index.close()
		x.removeFolder(b.index.folder)
		return false
	}
	x.using.Lock()
	before := x.current.Swap(b.index)
	x.using.Unlock()
	x.log.Info("the search index is built", "objects", x.read.Load(), "took", time.Since(b.began).Round(time.Millisecond))
	if before != nil {
		before.close()
		x.removeFolder(before.folder)
	}
	return true
}

func (x *storeIndex) buildNext(ctx context.Context, js jetstream.JetStream) (*textIndex, error) {
	limited, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	log, err := eventlog.GetState(limited, js) // before the store is read
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(x.folder, 0o700); err != nil {
		return nil, errs.Wrap(err, errs.Unavailable, "the folder of the search index can't be made")
	}
	next := 1
	if all := x.numbers(); len(all) > 0 {
		next = all[len(all)-1] + 1
	}
	of := x.of.Load()
	built, err := newIndex(x.numbered(next), of.Settings)
	if err != nil {
		return nil, err
	}
	built.store = of.Store
	if err := x.fill(ctx, built, position{Log: log.Created, Sequence: log.Last}); err != nil {
		_ = built.bleve.Close()
		return nil, errors.Join(err, os.RemoveAll(built.folder))
	}
	return built, nil
}

// fill has an index have what the store has, and follow the log from a position on.
func (x *storeIndex) fill(ctx context.Context, built *textIndex, at position) error {
	x.read.Store(0)
	b, logged := built.batch(), time.Now()
	for r, err := range driver.Records(ctx, built.store.Driver(), buildPage) {
		if err != nil {
			return err
		}
		if err := b.set(ctx, r); err != nil {
			return err
		}
		if b.full() {
			if err := b.write(ctx, nil); err != nil {
				return err
			}
		}
		if n := x.read.Add(1); time.Since(logged) > logInterval {
			logged = time.Now()
			x.log.Info("the search index is being built", "objects", n)
		}
	}
	if err := b.write(ctx, &at); err != nil {
		return err
	}
	built.at.Store(&at)
	for some := int64(maxWaiting); some > 0; some-- { // else a crash could find neither this index on disk nor the one before
		if err := built.awaitDisk(ctx, some); err != nil {
			return err
		}
	}
	return nil
}
