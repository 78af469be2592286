// Package search indexes the text of objects, so that lists find them by the words in it.
//
// A process with the role search has an index of its own, made by bleve, for each store that has one configured, in a
// folder of its data folder. It answers requests on the bus, and of several such processes one answers each.
//
// # Why an index matches its store
//
// A build reads the store. Then the index follows the log: for each event it reads the current object, and writes that.
// So an event may be old, or be redelivered: after the last event of an object the index has the object as of that
// write, or of a later one.
//
// After reading the objects, the index writes them and its position in the log in one batch: a crash between reading
// and writing repeats both. A build reads the end of the log before it begins: the store has the writes of all events
// up to there, and the index follows each later event.
//
// An index is built again if the log no longer has its position. The log was replaced, lost its newest events in a
// power cut, or removed events before the index followed them. Meanwhile the old index answers.
package search

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"belfry/internal/backoff"
	"belfry/pkg/bus/eventlog"
	"belfry/pkg/errs"
	"belfry/pkg/store"
	"belfry/pkg/walk"
)

const (
	pollInterval  = 200 * time.Millisecond // of the log
	checkInterval = 5 * time.Second        // of whether the log is the same
	callTimeout   = 10 * time.Second       // of a request to the log
	retryMin      = 100 * time.Millisecond
	retryMax      = 10 * time.Second
)

// Settings are what of a store is indexed, and how. Another setting needs another index.
type Settings struct {
	Fields   []string `json:"fields"`
	Language string   `json:"language"`       // "": words as they are
	Backend  string   `json:"backend"`        // that has the objects
	Rule     string   `json:"rule,omitempty"` // whose terms objects have: see store.SearchRule
}

// Indexed is a store whose text is indexed.
type Indexed struct {
	Store *store.Store
	Settings
}

// Options configure a Service.
type Options struct {
	Conn      *nats.Conn
	JetStream jetstream.JetStream
	Folder    string // of the indexes
	Stores    []Indexed
	Logger    *slog.Logger
	Rate      *walk.Rate // of builds; nil: no limit
}

// Service keeps indexes and answers searches.
type Service struct {
	opts    Options
	slots   chan struct{}   // of searches that are executed
	ctx     context.Context // ends with Close
	cancel  context.CancelFunc
	closing sync.RWMutex // held while it is canceled
	running sync.WaitGroup
	log     *sharedLog

	mu      sync.Mutex // guards indexes
	indexes []*storeIndex
}

// Start opens the indexes, which are brought up to date in the background, and answers searches.
func Start(o Options) (*Service, error) {
	limitBeginnings()
	if err := os.MkdirAll(o.Folder, 0o700); err != nil {
		return nil, errs.Wrap(err, errs.Internal, "the folder of the search indexes can't be made")
	}
	s := &Service{opts: o, slots: make(chan struct{}, maxSearches), log: &sharedLog{conn: o.Conn, js: o.JetStream}}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.running.Go(func() { s.log.watch(s.ctx) })
	for _, of := range o.Stores {
		if err := s.add(of); err != nil {
			s.Close()
			return nil, err
		}
	}
	return s, nil
}

// add opens the index of a store, and answers searches of it.
func (s *Service) add(of Indexed) error {
	x := &storeIndex{folder: filepath.Join(s.opts.Folder, of.Store.Name()), rate: s.opts.Rate,
		log: s.opts.Logger.With("store", of.Store.Name()), done: make(chan struct{})}
	x.of.Store(&of)
	x.open()
	ctx, cancel := context.WithCancel(s.ctx)
	x.cancel = cancel
	if err := s.subscribe(x); err != nil {
		cancel()
		x.close()
		return err
	}
	s.mu.Lock()
	s.indexes = append(s.indexes, x)
	s.mu.Unlock()
	go func() {
		defer close(x.done)
		s.run(ctx, x)
	}()
	return nil
}

// end closes the index of a store, which continues where it is when it is opened again.
func (s *Service) end(x *storeIndex) {
	_ = x.sub.Unsubscribe() // fails when the connection is closed already
	x.cancel()
	<-x.done
	x.using.Lock() // a search that has begun ends first
	defer x.using.Unlock()
	x.close()
	x.current.Store(nil)
}

// Reload applies another configuration to the indexes. As at a start, an index with other settings is built beside the
// current one. The index of a store that is no longer searched stays in its folder.
func (s *Service) Reload(stores []Indexed) error {
	var failed error
	var kept, ended []*storeIndex
	s.mu.Lock()
	for _, x := range s.indexes {
		if i := slices.IndexFunc(stores,
			func(of Indexed) bool { return of.Store.Name() == x.of.Load().Store.Name() }); i >= 0 {
			x.of.Store(&stores[i])
			kept = append(kept, x)
		} else {
			ended = append(ended, x)
		}
	}
	s.indexes = kept
	s.mu.Unlock()
	for _, x := range ended {
		s.end(x)
	}
	for _, of := range stores {
		if !slices.ContainsFunc(kept, func(x *storeIndex) bool { return x.of.Load().Store.Name() == of.Store.Name() }) {
			failed = errors.Join(failed, s.add(of))
		}
	}
	return failed
}

// Close ends the service. The indexes continue where they are after the next start.
func (s *Service) Close() {
	s.closing.Lock()
	s.cancel()
	s.closing.Unlock()
	s.mu.Lock()
	all := s.indexes
	s.indexes = nil
	s.mu.Unlock()
	for _, x := range all {
		s.end(x)
	}
	s.running.Wait()
}

// all returns the indexes.
func (s *Service) all() []*storeIndex {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.indexes)
}

// run builds an index and follows the log with it. Each does so on its own: one that is slow, or can't be written,
// keeps no other.
func (s *Service) run(ctx context.Context, x *storeIndex) {
	var checked time.Time
	for retry := backoff.New(retryMin, retryMax); ctx.Err() == nil; {
		err := s.advance(ctx, x, &checked)
		switch {
		case err == nil:
			retry.Reset()
			x.stuck = ""
		case ctx.Err() != nil:
		default:
			checked = time.Time{}
			if x.stuck != err.Error() {
				x.stuck = err.Error()
				x.log.Warn("the search index can't follow the log; retrying", "error", err)
			}
			_ = retry.Wait(ctx)
		}
	}
}

// advance has an index follow a page of the log, or waits for one. While its successor is built, an index continues;
// one that can't follow the log waits for the build.
func (s *Service) advance(ctx context.Context, x *storeIndex, checked *time.Time) error {
	if x.take(ctx, false) {
		*checked = time.Time{}
	}
	limited, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if time.Since(*checked) > checkInterval || x.outdated() && x.mayBuild() {
		state, err := s.log.state(limited)
		if err != nil {
			return err
		}
		follows := x.follows(state)
		if follows {
			at := x.current.Load().at.Load()
			if follows, err = eventlog.Has(limited, s.opts.Conn, at.Sequence, at.Mark); err != nil {
				return err
			}
		}
		if !follows || x.outdated() {
			x.build(ctx, s.opts.JetStream)
		} else {
			x.forget()
		}
		if !follows {
			x.take(ctx, true)
			return nil
		}
		*checked = time.Now()
	}
	current := x.current.Load()
	if current == nil {
		return errNoIndex
	}
	at := current.at.Load()
	page, more, err := s.log.page(limited, at.Sequence+1)
	if err != nil {
		return err
	}
	if len(page) > 0 {
		// Between two checks the log may have lost its end, and have got others.
		switch has, err := eventlog.Has(limited, s.opts.Conn, at.Sequence, at.Mark); {
		case err != nil:
			return err
		case !has:
			*checked = time.Time{}
			return nil
		}
	}
	err = x.apply(ctx, page)
	if errors.Is(err, errGap) {
		x.log.Warn("the log lacks events that the search index has not followed; it is built again")
		x.build(ctx, s.opts.JetStream)
		x.take(ctx, true)
		*checked = time.Time{}
		return nil
	}
	if err != nil {
		return err
	}
	if !more {
		_ = backoff.Sleep(ctx, pollInterval) // ends with ctx
	}
	return nil
}

var errNoIndex = errs.New(errs.Unavailable, "the index could not be opened")

// Status is the state of the index of a store, and how far the build in progress is, or the last one was.
type Status struct {
	walk.Status

	Ready    bool   // it answers
	Former   bool   // it is of other settings, or of the version before, until another one is built
	Objects  uint64 // in the index
	Followed uint64 // the sequence of the last event, of all stores, that was followed
	Behind   uint64 // events of the log, of all stores, that were not followed
	Late     bool   // it is behind by more than events take
}

// Status returns the states of all indexes.
func (s *Service) Status() []Status {
	indexes := s.all()
	all := make([]Status, 0, len(indexes))
	for _, x := range indexes {
		state := x.status()
		state.Behind, state.Late = s.log.behind(state.Followed)
		if !state.Ready {
			state.Behind, state.Late = 0, false
		}
		all = append(all, state)
	}
	return all
}
