package search

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"belfry/pkg/bus/eventlog"
	"belfry/pkg/errs"
	"belfry/pkg/store/driver"
	"belfry/pkg/walk"
)

// pageLimit is how much of the log is followed at once.
var pageLimit = eventlog.Limit{Events: 500, Bytes: 4 << 20}

const (
	buildPage = 32     // objects, each of which may have more than a MiB
	saveAfter = 10_000 // events without one of the store, after which the position is stored
)

// storeIndex is the index of a store.
type storeIndex struct {
	of atomic.Pointer[Indexed] // a reload replaces it
	// of the index, which is in a folder with a number, and of its successor while that is built
	folder string
	log    *slog.Logger
	rate   *walk.Rate                               // of builds
	walk   atomic.Pointer[walk.Walk[driver.Record]] // of the build in progress, or the last one; nil: no build yet
	// why the last build failed, so that it is logged once; used only by run
	failed string
	retry  time.Time // before which no build begins, as one has failed
	stuck  string    // why the index can't follow the log, in the same way

	using   sync.RWMutex              // held for reading while current is searched
	current atomic.Pointer[textIndex] // nil: no index yet

	// the folder of an index whose build has ended early, and can be continued; "": no such build. Used only by run
	unfinished string

	sub    *nats.Subscription
	cancel context.CancelFunc // of what follows the log
	done   chan struct{}      // closed when that has ended

	busy     atomic.Bool // a build is in progress
	built    chan built  // by the build in progress, else nil. Used only by run
	building sync.WaitGroup
}

// open opens the index, if there is one that was built to the end with these settings, else one that answers until
// there is, and removes others, but for one whose build can be continued.
func (x *storeIndex) open() {
	of := x.of.Load()
	for _, number := range slices.Backward(x.numbers()) {
		folder, current := x.numbered(number), x.current.Load()
		if current == nil || !current.is(of.Settings) {
			if found, ok := openIndex(folder, of.Settings); ok && (current == nil || found.is(of.Settings)) {
				found.store = of.Store
				x.current.Store(found)
				if current == nil {
					continue
				}
				_ = current.bleve.Close() // nothing was written
				folder = current.folder
			} else if ok {
				_ = found.bleve.Close()
			}
		}
		if x.unfinished == "" && isUnfinished(folder, of.Settings) {
			x.unfinished = folder
			continue
		}
		x.removeFolder(folder)
	}
}

func (x *storeIndex) removeFolder(folder string) {
	if err := os.RemoveAll(folder); err != nil {
		x.log.Warn("a former search index can't be removed", "error", err)
	}
}

// numbers returns the numbers of the existing folders, the lowest first.
func (x *storeIndex) numbers() (all []int) {
	entries, _ := os.ReadDir(x.folder) // the folder may not exist yet
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
	if current == nil {
		return false
	}
	return current.at.Load().in(log)
}

// in reports whether a log may have the position, and has all events after it.
func (at *position) in(log eventlog.State) bool {
	return at.Log.Equal(log.Created) && log.First <= at.Sequence+1 && at.Sequence <= log.Last
}

// outdated reports whether another index is needed, because of another version of belfry, a restart or a reload: that
// is built while this one answers, and follows the log.
func (x *storeIndex) outdated() bool {
	current := x.current.Load()
	return current != nil && !current.is(x.of.Load().Settings)
}

// errGap says that somebody has removed events from the log that the index has not followed.
var errGap = errs.New(errs.Unavailable,
	"the log lacks events that the search index has not followed: it is built again")

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
		if ok && !name.OnlyByName() && store == current.store.Name() && !slices.Contains(uuids, uuid) {
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
	again, ok := openIndex(before.folder, before.settings)
	if !ok {
		x.removeFolder(before.folder)
		return
	}
	again.store = before.store
	x.current.Store(again)
}

// caught calls a function of bleve, whose panics must not end the process.
func caught(do func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = errs.Panicked(p)
		}
	}()
	return do()
}

// progress returns how far the build in progress is, or the last one was.
func (x *storeIndex) progress() walk.Progress {
	if w := x.walk.Load(); w != nil {
		return w.Progress()
	}
	return walk.Progress{}
}

func (x *storeIndex) status() Status {
	of, p := x.of.Load().Store.Name(), x.progress()
	s := Status{Status: walk.Status{Kind: walk.Search, Name: of, Store: of, Running: x.busy.Load(), Began: p.Began,
		Total: p.Total, Counts: p.Counts}}
	x.using.RLock()
	defer x.using.RUnlock()
	current := x.current.Load()
	if current == nil {
		return s
	}
	s.Ready, s.Former = true, x.outdated()
	s.Filled = !s.Former
	s.Objects, _ = current.bleve.DocCount()
	s.Followed = current.at.Load().Sequence
	return s
}

// close closes the index, and one that has just been built: the next start finds it. Nothing else may use the index.
func (x *storeIndex) close() {
	x.building.Wait()
	if x.built != nil {
		if b := <-x.built; b.err == nil {
			b.index.close()
		}
	}
	if current := x.current.Load(); current != nil {
		current.close()
	}
}
