// Package search indexes the text of objects, so that lists find them by the words in it.
//
// A process with the role search has an index of its own, made by bleve, for each store that has one configured, in a
// folder of its data folder. It answers requests on the bus, and of several such processes one answers each.
//
// # Why an index has what the store has
//
// An index is built by reading the store, and then follows the log: for each event the object is read as it is now, and the
// index has that. So an event may be old, or come again: after the last event of an object the index has the object as it
// was after that write, or after a later one. What the index has and its position in the log are written in one batch, after
// the objects were read: a crash between reading and writing repeats both. The end of the log is read before a build begins:
// a write whose event was in the log by then is found in the store, and each later event is followed.
//
// An index whose position is not in the log any more, because the log was replaced, or removed events that were not
// followed, is built again. It answers meanwhile with what it has.
package search

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"belfry/internal/backoff"
	"belfry/pkg/bus/eventlog"
	"belfry/pkg/errs"
	"belfry/pkg/store"
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
	Language string   `json:"language"` // "": words as they are
	Backend  string   `json:"backend"`  // that has the objects
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
}

// Service keeps indexes and answers searches.
type Service struct {
	opts    Options
	indexes []*storeIndex
	subs    []*nats.Subscription
	slots   chan struct{}   // of searches that are executed
	ctx     context.Context // ends with Close
	cancel  context.CancelFunc
	closing sync.RWMutex // held while it is canceled
	running sync.WaitGroup
	built   chan struct{} // one index or more were built
	end     atomic.Uint64 // of the log, as far as is known
	failed  string        // the last error, so that it is logged once
}

// Start opens the indexes, which are brought up to date in the background, and answers searches.
func Start(o Options) (*Service, error) {
	limitBeginnings()
	if err := os.MkdirAll(o.Folder, 0o700); err != nil {
		return nil, errs.Wrap(err, errs.Internal, "the folder of the search indexes can't be made")
	}
	s := &Service{opts: o, slots: make(chan struct{}, maxSearches), built: make(chan struct{}, 1)}
	for _, of := range o.Stores {
		x := &storeIndex{of: of, folder: filepath.Join(o.Folder, of.Store.Name()), log: o.Logger.With("store", of.Store.Name())}
		x.open()
		s.indexes = append(s.indexes, x)
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	if err := s.subscribe(); err != nil {
		s.Close()
		return nil, err
	}
	s.running.Go(func() { s.run(s.ctx) })
	return s, nil
}

// Close ends the service. The indexes continue where they are after the next start.
func (s *Service) Close() {
	for _, sub := range s.subs {
		_ = sub.Unsubscribe() // fails when the connection is closed already
	}
	s.closing.Lock()
	s.cancel()
	s.closing.Unlock()
	s.running.Wait()
	s.closeIndexes()
}

func (s *Service) closeIndexes() {
	for _, x := range s.indexes {
		x.close()
	}
}

// run follows the log with all indexes that are built, and builds the others.
func (s *Service) run(ctx context.Context) {
	var checked time.Time
	for retry := backoff.New(retryMin, retryMax); ctx.Err() == nil; {
		err := s.advance(ctx, &checked)
		switch {
		case err == nil:
			retry.Reset()
			s.failed = ""
		case ctx.Err() != nil:
		default:
			checked = time.Time{}
			if s.failed != err.Error() {
				s.failed = err.Error()
				s.opts.Logger.Warn("the search indexes can't follow the log; retrying", "error", err)
			}
			_ = retry.Wait(ctx)
		}
	}
}

// advance reads a page of the log, and waits if there is none.
func (s *Service) advance(ctx context.Context, checked *time.Time) error {
	limited, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if time.Since(*checked) > checkInterval {
		if err := s.check(limited, ctx); err != nil {
			return err
		}
		*checked = time.Now()
	}
	following := s.following()
	if len(following) == 0 {
		s.await(ctx)
		return nil
	}
	page, more, err := eventlog.Page(limited, s.opts.Conn, first(following), pageLimit)
	if err != nil {
		return err
	}
	for _, x := range following {
		if err := x.apply(ctx, page); err != nil {
			return err
		}
	}
	if len(page) > 0 {
		s.end.Store(max(s.end.Load(), page[len(page)-1].Sequence))
	}
	if !more {
		s.await(ctx)
	}
	return nil
}

// await waits until the log may have more, or another index has to follow it.
func (s *Service) await(ctx context.Context) {
	timer := time.NewTimer(pollInterval)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	case <-s.built:
	}
}

// check has those indexes built again that are not, or whose position is not in the log any more.
func (s *Service) check(limited, ctx context.Context) error {
	state, err := eventlog.GetState(limited, s.opts.JetStream)
	if err != nil {
		return err
	}
	s.end.Store(state.Last)
	for _, x := range s.indexes {
		if x.building.Load() || x.follows(state) {
			continue
		}
		x.building.Store(true)
		s.running.Go(func() {
			x.build(ctx, s.opts.JetStream)
			select {
			case s.built <- struct{}{}:
			default:
			}
		})
	}
	return nil
}

// following returns the indexes that follow the log.
func (s *Service) following() (all []*storeIndex) {
	for _, x := range s.indexes {
		if !x.building.Load() && x.current.Load() != nil {
			all = append(all, x)
		}
	}
	return all
}

// first returns the sequence of the first event that one of the indexes has not followed.
func first(all []*storeIndex) uint64 {
	sequence := all[0].current.Load().at.Load().Sequence
	for _, x := range all[1:] {
		sequence = min(sequence, x.current.Load().at.Load().Sequence)
	}
	return sequence + 1
}

// Status is the state of the index of a store.
type Status struct {
	Store    string
	Ready    bool   // it answers
	Objects  uint64 // in the index
	Read     int64  // objects that a build has read
	Followed uint64 // the sequence of the last event, of all stores, that was followed
	Behind   uint64 // events of the log, of all stores, that were not followed
}

// Status returns the states of all indexes.
func (s *Service) Status() []Status {
	all := make([]Status, 0, len(s.indexes))
	for _, x := range s.indexes {
		all = append(all, x.status(s.end.Load()))
	}
	return all
}
