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
	"belfry/pkg/walk"
)

// built is the result of a build.
type built struct {
	index *textIndex
	err   error
}

// mayBuild reports whether a build may begin: none is in progress, and none has just failed.
func (x *storeIndex) mayBuild() bool { return x.built == nil && time.Now().After(x.retry) }

// build starts to build an index of the store, which replaces the current one once it is complete and on disk. That
// one answers until then, and stays if the process ends.
func (x *storeIndex) build(ctx context.Context, js jetstream.JetStream) {
	if !x.mayBuild() {
		return
	}
	done, folder := make(chan built, 1), x.unfinished
	x.built, x.unfinished = done, ""
	x.busy.Store(true)
	x.building.Go(func() {
		var b built
		b.err = caught(func() (err error) {
			b.index, err = x.buildNext(ctx, js, folder)
			return err
		})
		done <- b
	})
}

// take replaces the current index with the result of a build, and reports whether it did. It waits for the build, or
// until one may begin, if it is to.
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
	x.busy.Store(false)
	if left := (unfinishedError{}); errors.As(b.err, &left) {
		x.unfinished = left.folder
	}
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
	// A reload was taken back meanwhile.
	if before, of := x.current.Load(), x.of.Load().Settings; !wait && before != nil && before.is(of) &&
		!b.index.is(of) {
		b.index.close()
		x.removeFolder(b.index.folder)
		return false
	}
	x.using.Lock()
	before := x.current.Swap(b.index)
	x.using.Unlock()
	if before != nil {
		before.close()
		x.removeFolder(before.folder)
	}
	return true
}

// buildNext continues the build in a folder, if that is possible, or begins one.
func (x *storeIndex) buildNext(ctx context.Context, js jetstream.JetStream, folder string) (*textIndex, error) {
	limited, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	log, err := eventlog.GetState(limited, js) // before the store is read
	if err != nil {
		return nil, err
	}
	built, from, err := x.continued(limited, js.Conn(), folder, log)
	if err != nil {
		return nil, err
	}
	of := x.of.Load()
	if built == nil {
		if built, from.position, err = x.begin(limited, js, log, of); err != nil {
			return nil, err
		}
	}
	built.store = of.Store
	if err := x.fill(ctx, built, from); err != nil {
		wrong := indexError{}
		if x.leave(built, !errors.As(err, &wrong)) {
			return nil, unfinishedError{err, built.folder}
		}
		return nil, err
	}
	return built, nil
}

// begin makes an empty index, and returns where in the log it is to follow it.
func (x *storeIndex) begin(ctx context.Context, js jetstream.JetStream, log eventlog.State,
	of *Indexed) (*textIndex, position, error) {
	at, err := endOf(ctx, js.Conn(), log)
	if err != nil {
		return nil, at, err
	}
	if err := os.MkdirAll(x.folder, 0o700); err != nil {
		return nil, at, errs.Wrap(err, errs.Unavailable, "the folder of the search index can't be made")
	}
	built, err := newIndex(x.next(), of.Settings)
	return built, at, err
}

// indexError is the error of an index that can't be written: its build is not continued.
type indexError struct{ error }

func (e indexError) Unwrap() error { return e.error }

// unfinishedError is the error of a build that can be continued.
type unfinishedError struct {
	error
	folder string
}

func (e unfinishedError) Unwrap() error { return e.error }

// fill writes the objects of the store to an index, starting at a place.
func (x *storeIndex) fill(ctx context.Context, built *textIndex, from unfinished) error {
	if from.Walk.Began.IsZero() {
		total, _, err := built.store.Count(ctx)
		if err != nil {
			return err
		}
		from.Walk.Total = total
	}
	b, unplaced := built.batch(), false // documents were written without the place after them
	write := func(ctx context.Context, at *position) error {
		unplaced = true
		if err := b.write(ctx, at); err != nil && ctx.Err() == nil {
			return indexError{err}
		}
		return ctx.Err()
	}
	w := walk.New(walk.Options[driver.Record]{
		Page: func(ctx context.Context, after []byte) ([]driver.Record, []byte, error) {
			page, err := built.store.Driver().Scan(ctx, after, buildPage)
			return page.Records, page.Next, err
		},
		Do: func(ctx context.Context, r driver.Record, _ func(int) error) error {
			if err := b.set(ctx, r); err != nil {
				return err
			}
			if b.bytes < maxBatchBytes {
				return nil
			}
			return write(ctx, nil)
		},
		Save: func(ctx context.Context, p walk.Progress) error {
			if !unplaced && !b.full() {
				return nil
			}
			if err := b.place(from.position, p); err != nil {
				return err
			}
			err := write(ctx, nil)
			unplaced = false
			return err
		},
		Complete: func(ctx context.Context, _ walk.Progress) error {
			b.batch.DeleteInternal(buildKey)
			if err := write(ctx, &from.position); err != nil {
				return err
			}
			built.at.Store(&from.position)
			// Else a crash could find neither this index on disk nor the one before.
			for some := int64(maxWaiting); some > 0; some-- {
				if err := built.awaitDisk(ctx, some); err != nil {
					return indexError{err}
				}
			}
			return nil
		},
		Together: true, Rate: x.rate, Logger: x.log,
		Text: walk.Text{Begins: "building the search index", Does: "building the search index",
			Done: "the search index is built"},
	}, from.Walk)
	x.walk.Store(w)
	return w.Run(ctx)
}
