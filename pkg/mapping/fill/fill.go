// Package fill fills the arrays of mappings, and the computed fields of stores, that were
// added, or changed, over existing data: an event causes the entries of one object, and a
// write computes the fields of one; what was written before has none.
//
// A Filler remembers in a store by which definition each array and the computed fields of
// each store have been filled. One process of an installation fills, holding a lease; an
// object at a time, by the backfill that a new target gets or by writing it again, and
// slowly enough that requests don't notice. It stores its place, so that after a crash the
// next process continues there.
//
// Every process has a Filler, also one that fills nothing: arrays and fields count as filled once a
// fill is complete during which no process has had another definition. Until all
// processes have the same configuration, as in a rolling update, the fill waits.
package fill

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"belfry/pkg/backoff"
	"belfry/pkg/errs"
	"belfry/pkg/store"
	"belfry/pkg/store/object"
)

const (
	interval    = 10 * time.Second
	goneAfter   = 3 * interval     // without a beat until a process counts as gone
	saveAfter   = interval / 2     // how often the progress is stored
	renewAfter  = interval / 2     // how often the lease is renewed
	logInterval = 30 * time.Second // how often the progress is logged
	pageSize    = 100              // targets that are filled before the place is stored
	callTimeout = 10 * time.Second // of the start and of polls
	stopTimeout = 2 * time.Second
	retryMin    = 200 * time.Millisecond
	retryMax    = interval
)

// stateUUID is the object that holds the state.
const stateUUID = "MAPPINGS"

// Options configure a Filler.
type Options struct {
	Set    *store.Set
	Store  *store.Store // holds the state
	Logger *slog.Logger

	// Alone says that no other process uses the stores.
	Alone bool

	// Fills says that this process fills. Others have a Filler, too: as long as one has another definition of a
	// mapping, nobody fills its arrays.
	Fills bool

	// Prepare has the worker receive the events of all mappings from now on. It is called before each fill: an object
	// that is written before that is read by the fill, and one that is written later is handled by the worker. Another
	// process with another configuration may have undone what an earlier call did. nil: nothing is to be done.
	Prepare func(ctx context.Context) error

	// OnFull is called as mapping.Options.OnFull is.
	OnFull func(m *store.Mapping, target string)

	Rate     int           // see SetRate
	Interval time.Duration // between polls; 0: 10 s
	Now      func() time.Time

	gone  time.Duration // without a beat until a process counts as gone; 0: goneAfter
	renew time.Duration // between renewals of the lease; 0: renewAfter
}

// Filler fills arrays and computed fields. Its methods are safe for concurrent use.
type Filler struct {
	opts    Options
	log     *slog.Logger
	shared  store.Shared[state]
	process string
	own     map[string]string // definitions by name
	works   map[string]work   // by name
	watcher *watcher          // used by run alone
	waits   map[string]bool   // logged that they wait for other processes

	cancel  context.CancelFunc
	running sync.WaitGroup
	targets atomic.Int64 // that this process has filled
	rate    atomic.Int64

	current atomic.Pointer[state] // as it was read last; it is not changed any more
	failed  string                // the last error, so that it is logged once; used by Start, and then by run alone
}

// Start records the definitions of this process, and then fills in the background. It must be called before workers
// of this process handle events.
func Start(ctx context.Context, o Options) (*Filler, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	f := &Filler{
		opts: o, log: o.Logger, shared: store.Shared[state]{Store: o.Store, UUID: stateUUID, What: "what is stored about mappings"},
		process: object.NewUUID(), own: map[string]string{}, works: map[string]work{}, waits: map[string]bool{},
	}
	f.SetRate(o.Rate)
	f.opts.Interval, f.opts.renew = cmp.Or(o.Interval, interval), cmp.Or(o.renew, renewAfter)
	f.watcher = &watcher{alone: o.Alone, gone: cmp.Or(o.gone, goneAfter), now: o.Now, seen: map[string]beat{}}
	for name, w := range worksOf(o) {
		f.own[name], f.works[name] = w.definition(), w
	}
	for delays := backoff.New(retryMin, retryMax); ; {
		err := f.poll(ctx)
		if err == nil {
			break
		}
		if !errors.Is(err, errs.Unavailable) {
			return nil, err
		}
		f.report(err)
		if delays.Wait(ctx) != nil {
			return nil, err
		}
	}
	running, cancel := context.WithCancel(context.Background())
	f.cancel = cancel
	f.running.Go(func() { f.run(running) })
	return f, nil
}

// SetRate sets how many objects a second are read at most: targets, and objects whose entries are computed. 0 is no
// limit. A fill in progress continues with it.
func (f *Filler) SetRate(objects int) { f.rate.Store(int64(objects)) }

// Close ends a fill that is in progress: the next start continues it.
func (f *Filler) Close() {
	f.cancel()
	f.running.Wait()
}

// run polls, and fills what is due.
func (f *Filler) run(ctx context.Context) {
	defer f.end(ctx)
	retries := backoff.New(retryMin, retryMax)
	for ctx.Err() == nil {
		err := f.poll(ctx)
		if err == nil {
			err = f.fillDue(ctx)
		}
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			f.report(err)
			_ = retries.Wait(ctx)
			continue
		}
		retries.Reset()
		f.report(nil)
		_ = backoff.Sleep(ctx, f.opts.Interval)
	}
}

// end leaves the rest to the next process.
func (f *Filler) end(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	// Without it, another process takes the lease somewhat later.
	_ = f.change(ctx, func(s *state) bool { return s.release(f.process) })
}

// report logs an error when it is another one than before.
func (f *Filler) report(err error) {
	if err == nil {
		f.failed = ""
		return
	}
	if text := err.Error(); text != f.failed {
		f.failed = text
		f.log.Warn("arrays and computed fields can't be filled; retrying", "error", err)
	}
}

// poll records that this process runs, and reads what others have recorded.
func (f *Filler) poll(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return f.change(ctx, func(s *state) bool { return s.observe(f.own, f.watcher) })
}

// fillDue fills what is to be filled, unless another process does.
func (f *Filler) fillDue(ctx context.Context) error {
	if !f.opts.Fills {
		return nil
	}
	due := f.due()
	if len(due) == 0 {
		return nil
	}
	if f.opts.Prepare != nil {
		if err := f.opts.Prepare(ctx); err != nil {
			return err
		}
	}
	claimed := false
	err := f.change(ctx, func(s *state) bool {
		claimed = s.claim(f.process, f.watcher)
		return claimed
	})
	if err != nil || !claimed {
		return err
	}
	for _, name := range due {
		if err := f.fill(ctx, name); err != nil {
			return err
		}
	}
	return f.change(ctx, func(s *state) bool { return s.release(f.process) })
}

// due returns the names of what is to be filled, and says which wait for other processes.
func (f *Filler) due() []string {
	s := f.current.Load()
	var due []string
	for name, definition := range f.own {
		r := s.Mappings[name]
		switch {
		case s.due(name, definition):
			due = append(due, name)
			delete(f.waits, name)
		case r != nil && len(r.Seen) > 1 && !f.waits[name]:
			f.waits[name] = true
			w := f.works[name]
			f.log.Warn("a process with another configuration runs: "+w.what()+" are filled once all processes have the same", w.kind(), name)
		}
	}
	slices.Sort(due)
	return due
}

// change changes the state, and keeps it as the current one. change returns whether it is to be stored.
func (f *Filler) change(ctx context.Context, change func(*state) bool) error {
	s, err := f.shared.Change(ctx, change)
	if err != nil {
		return err
	}
	f.current.Store(&s)
	return nil
}
