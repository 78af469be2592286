package search

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"belfry/pkg/bus/eventlog"
	"belfry/pkg/errs"
	"belfry/pkg/store/driver"
)

// pageLimit is how much of the log is followed at once.
var pageLimit = eventlog.Limit{Events: 500, Bytes: 4 << 20}

const (
	buildPage   = 32               // objects, each of which may have more than a MiB
	logInterval = 30 * time.Second // of the progress of a build
	saveAfter   = 10_000           // events without one of the store, after which the position is stored
)

// storeIndex is the index of a store.
type storeIndex struct {
	of     atomic.Pointer[Indexed] // a reload replaces it
	folder string                  // of the index, which is in a folder with a number, and of its successor while that is built
	log    *slog.Logger
	read   atomic.Int64 // objects that a build has read
	failed string       // why the last build failed, so that it is logged once; used by run alone
	stuck  string       // why the index can't follow the log, in the same way

	using   sync.RWMutex              // held for reading while current is searched
	current atomic.Pointer[textIndex] // nil: there is none yet
}

// open opens the index, if there is one that was built to the end with these settings, and removes others.
func (x *storeIndex) open() {
	for _, number := range slices.Backward(x.numbers()) {
		folder := x.numbered(number)
		if x.current.Load() == nil {
			of := x.of.Load()
			if found, ok := openIndex(folder, of.Settings); ok {
				found.store = of.Store
				x.current.Store(found)
				continue
			}
		}
		if err := os.RemoveAll(folder); err != nil {
			x.log.Warn("a former search index can't be removed", "error", err)
		}
	}
}

// numbers returns those of the folders that there are, the lowest first.
func (x *storeIndex) numbers() (all []int) {
	entries, _ := os.ReadDir(x.folder) // there may be none
	for _, e := range entries {
		if n, err := strconv.Atoi(e.Name()); err == nil {
			all = append(all, n)
		}
	}
	slices.Sort(all)
	return all
}

func (x *storeIndex) numbered(n int) string { return filepath.Join(x.folder, strconv.Itoa(n)) }

// follows reports whether the index can follow a log.
func (x *storeIndex) follows(log eventlog.State) bool {
	current := x.current.Load()
	if current == nil || x.outdated() {
		return false
	}
	at := *current.at.Load()
	return at.Log.Equal(log.Created) && log.First <= at.Sequence+1 && at.Sequence <= log.Last
}

// outdated reports whether a reload has changed what the index is to have: another one is built then.
func (x *storeIndex) outdated() bool {
	current := x.current.Load()
	return current != nil && !reflect.DeepEqual(current.settings, x.of.Load().Settings)
}

// errGap says that somebody has removed events from the log that the index has not followed.
var errGap = errs.New(errs.Unavailable, "the log lacks events that the search index has not followed: it is built again")

// apply follows events. Those of other stores move the position.
func (x *storeIndex) apply(ctx context.Context, page []*eventlog.Entry) error {
	current := x.current.Load()
	at := *current.at.Load()
	var uuids []string
	for _, e := range page {
		if e.Sequence <= at.Sequence {
			continue
		}
		if e.Sequence > at.Sequence+1 {
			return errGap
		}
		at.Sequence, at.Mark = e.Sequence, e.Mark()
		name, store, uuid, ok := eventlog.ParseSubject(e.Subject)
		if ok && !name.IsAuth() && store == current.store.Name() && !slices.Contains(uuids, uuid) {
			uuids = append(uuids, uuid)
		}
	}
	if len(uuids) > 0 || at.Sequence-current.stored.Sequence >= saveAfter {
		err := caught(func() error { return current.update(ctx, uuids, at) })
		if err != nil {
			if errors.Is(err, errStalled) {
				x.reopen()
			}
			return err
		}
	}
	current.at.Store(&at)
	return nil
}

// reopen opens the index again: what bleve does in the background may have ended with a failure.
func (x *storeIndex) reopen() {
	x.using.Lock()
	defer x.using.Unlock()
	before := x.current.Swap(nil)
	if err := caught(func() error { return before.bleve.Close() }); err != nil {
		x.log.Warn("the search index can't be closed", "error", err)
	}
	x.open()
}

// caught calls a function of bleve, whose panics are not to end the process.
func caught(do func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = errs.Panicked(p)
		}
	}()
	return do()
}

// build makes an index of what the store has, which then takes the place of the current one, and reports whether it does.
func (x *storeIndex) build(ctx context.Context, js jetstream.JetStream) bool {
	began := time.Now()
	var built *textIndex
	err := caught(func() (err error) {
		built, err = x.buildNext(ctx, js)
		return err
	})
	switch {
	case err == nil && ctx.Err() != nil:
		built.close() // the next start finds it
		return false
	case ctx.Err() != nil:
		return false
	case err != nil:
		if x.failed != err.Error() {
			x.failed = err.Error()
			x.log.Error("the search index can't be built; retrying", "error", err)
		}
		return false
	}
	x.failed = ""
	x.using.Lock()
	before := x.current.Swap(built)
	x.using.Unlock()
	x.log.Info("the search index is built", "objects", x.read.Load(), "took", time.Since(began).Round(time.Millisecond))
	if before != nil {
		before.close()
		if err := before.remove(); err != nil {
			x.log.Warn("a former search index can't be removed", "error", err)
		}
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
		return nil, errors.Join(err, built.remove())
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
	return nil
}

func (x *storeIndex) status() Status {
	s := Status{Store: x.of.Load().Store.Name(), Read: x.read.Load()}
	x.using.RLock()
	defer x.using.RUnlock()
	current := x.current.Load()
	if current == nil {
		return s
	}
	s.Ready = true
	s.Objects, _ = current.bleve.DocCount()
	s.Followed = current.at.Load().Sequence
	return s
}

func (x *storeIndex) close() {
	if current := x.current.Load(); current != nil {
		current.close()
	}
}
