// Package fill updates derived data after a change of the configuration: the arrays of mappings, computed fields, and
// the claims of unique values. Events and writes update the data of one object. A fill updates that of all objects that
// were written before.
//
// For each work, a Filler stores the definition by which it was done for all objects. One process of an installation
// fills, holding a lease. It stores its place, so that after a crash the next process continues there.
//
// Every process has a Filler, also one that fills nothing. A work counts as filled once a fill is complete during which
// no process had another definition. Until all processes have the same configuration, as in a rolling update, the
// fill waits.
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

	"belfry/internal/backoff"
	"belfry/pkg/errs"
	"belfry/pkg/object"
	"belfry/pkg/store"
	"belfry/pkg/walk"
)

const (
	interval    = 10 * time.Second
	goneAfter   = 3 * interval     // without a beat until a process counts as gone
	renewAfter  = interval / 2     // how often the lease is renewed, and the progress stored
	callTimeout = 10 * time.Second // of the start and of polls
	stopTimeout = 2 * time.Second
	retryMin    = 200 * time.Millisecond
	retryMax    = interval
)

// Options configure a Filler.
type Options struct {
	Works  Works
	Store  *store.Store // holds the state
	Logger *slog.Logger

	// Alone says that no other process uses the stores.
	Alone bool

	// Fills says that this process fills. Others have a Filler, too: as long as one has another definition of a
	// work, nobody fills it.
	Fills bool

	// Prepare has the worker receive the events of all mappings from now on. It is called before each fill: an object
	// that is written before that is read by the fill, and one that is written later is handled by the worker. Another
	// process with another configuration may have undone what an earlier call did. nil: nothing is to be done.
	Prepare func(ctx context.Context) error

	// Ready is closed once nothing in this process writes by another definition, which can happen after a reload. Until
	// then the Filler does not fill. nil: it may fill from the start.
	Ready <-chan struct{}

	Rate     *walk.Rate    // of objects that are read: targets, and objects whose entries are computed; nil: no limit
	Interval time.Duration // between polls; 0: 10 s
	Now      func() time.Time

	gone  time.Duration // without a beat until a process counts as gone; 0: goneAfter
	renew time.Duration // between renewals of the lease; 0: renewAfter
}

// Filler does works for existing objects. Its methods are safe for concurrent use.
type Filler struct {
	opts          Options
	log           *slog.Logger
	shared        store.Shared[state]
	process       string
	works         map[string]*work  // by name
	own           map[string]string // their definitions
	watcher       *watcher          // used by run alone
	leavesIndexes bool              // does not build any
	waits         map[string]bool   // logged that they wait for other processes

	cancel    context.CancelFunc
	running   sync.WaitGroup
	yielded   atomic.Bool
	held      atomic.Bool
	filling   atomic.Pointer[context.CancelFunc] // ends the fill in progress; nil: none is
	noticed   bool                               // that Ready is closed; used by run alone
	skipped   bool                               // stores without objects were; used by Start, and then by run alone
	rechecked time.Time                          // when all indexes were; used by run alone
	targets   atomic.Int64                       // that this process has filled
	polls     atomic.Int64
	wake      chan struct{} // something may be due

	changing sync.Mutex                      // of the state: states are applied in the order of their reads
	current  atomic.Pointer[state]           // as it was read last; immutable
	others   atomic.Pointer[map[string]bool] // the works of which another process that runs has another definition
	// the last error, so that it is logged once; used by Start, and then by run alone
	failed string
}

func newFiller(o Options) *Filler {
	if o.Now == nil {
		o.Now = time.Now
	}
	f := &Filler{
		opts: o, log: o.Logger,
		shared:  store.Shared[state]{Store: o.Store, UUID: o.Works.state, What: "the state " + o.Works.state},
		process: object.NewUUID(), works: o.Works.byName, own: map[string]string{}, waits: map[string]bool{},
		wake: make(chan struct{}, 1),
	}
	f.opts.Interval, f.opts.renew, f.opts.gone = cmp.Or(o.Interval, interval), cmp.Or(o.renew, renewAfter),
		cmp.Or(o.gone, goneAfter)
	f.watcher = &watcher{alone: o.Alone, gone: f.opts.gone, now: o.Now, seen: map[string]beat{}}
	for name, w := range f.works {
		f.own[name] = w.definition
	}
	return f
}

// Start records the definitions of this process, and then fills in the background. It must be called before the process
// writes objects, and before its workers handle events.
func Start(ctx context.Context, o Options) (*Filler, error) {
	f := newFiller(o)
	for delays := backoff.New(retryMin, retryMax); ; {
		err := f.begin(ctx)
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

// Load has stores trust the filled works, for a command that does not write the data that depends on them.
func Load(ctx context.Context, o Options) error {
	f := newFiller(o)
	s, _, err := f.shared.Get(ctx)
	if err == nil {
		f.apply(&s)
	}
	return err
}

// Complete fills everything, for a command that writes while nobody serves. It leaves a work to other processes if they
// fill it, or still run with another definition of it. It leaves indexes to them, too, since it writes with all
// indexes.
func Complete(ctx context.Context, o Options) error {
	f := newFiller(o)
	f.leavesIndexes = true
	defer f.end(ctx)
	if err := f.begin(ctx); err != nil {
		return err
	}
	for began := f.opts.Now(); ; {
		if err := f.fillDue(ctx); err != nil {
			return err
		}
		if f.complete() || f.opts.Now().Sub(began) > 2*f.opts.gone {
			return nil
		}
		if err := backoff.Sleep(ctx, f.opts.Interval); err != nil {
			return err
		}
		if err := f.poll(ctx); err != nil {
			return err
		}
	}
}

func (f *Filler) complete() bool {
	return !slices.ContainsFunc(f.Status(), func(s walk.Status) bool { return !s.Filled && s.Kind != walk.Index })
}

// Hold ends the filling until Resume: another Filler of this process, for a reload, is being prepared. If no
// other process uses the stores, this one would take that for an earlier process that has ended. It would fill by its
// own definition once more, and a later configuration with the same would trust that.
func (f *Filler) Hold() {
	f.held.Store(true)
	f.endFill()
}

// Resume ends Hold.
func (f *Filler) Resume() { f.held.Store(false) }

// Yield ends the filling by this Filler: another one of this process, of a reload, continues. Others still
// see that the process works by these definitions, until Close.
func (f *Filler) Yield() {
	f.yielded.Store(true)
	f.endFill()
	if f.opts.Alone { // nobody else has to know
		f.cancel()
	}
}

// endFill ends the fill in progress.
func (f *Filler) endFill() {
	if end := f.filling.Load(); end != nil {
		(*end)()
	}
}

// mayFill reports whether this Filler may fill.
func (f *Filler) mayFill() bool {
	if !f.opts.Fills || f.yielded.Load() || f.held.Load() {
		return false
	}
	return f.ready()
}

// ready reports whether nothing in this process writes by another definition.
func (f *Filler) ready() bool {
	select {
	case <-f.opts.Ready:
		return true
	default:
		return f.opts.Ready == nil
	}
}

// Close ends a fill that is in progress: the next start continues it.
func (f *Filler) Close() {
	f.cancel()
	f.running.Wait()
}

// run polls, and fills the due works.
func (f *Filler) run(ctx context.Context) {
	defer f.end(ctx)
	retries := backoff.New(retryMin, retryMax)
	for ctx.Err() == nil {
		err := f.poll(ctx)
		if err == nil {
			err = f.skipEmpty(ctx)
		}
		if err == nil {
			err = f.fillDue(ctx)
		}
		switch {
		case ctx.Err() != nil:
			return
		case f.yielded.Load() || f.held.Load():
			f.end(ctx) // else the next Filler would wait for the lease
		case err != nil:
			if !errors.Is(err, errWaits) {
				f.report(err)
			}
			_ = retries.Wait(ctx)
			continue
		}
		retries.Reset()
		f.report(nil)
		f.await(ctx)
	}
}

// await waits for the next poll, or until it may fill, or until something may be due.
func (f *Filler) await(ctx context.Context) {
	timer := time.NewTimer(f.opts.Interval)
	defer timer.Stop()
	ready := f.opts.Ready
	if f.noticed {
		ready = nil
	}
	select {
	case <-ctx.Done():
	case <-timer.C:
	case <-f.wake:
	case <-ready:
		f.noticed = true
	}
}

// end leaves the rest to the next process.
func (f *Filler) end(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	// Without it, another process takes the lease somewhat later.
	_ = f.change(ctx, func(s *state) bool { return s.lease(f.watcher).Release(f.process) })
}

// report logs an error when it is another one than before.
func (f *Filler) report(err error) {
	if err == nil {
		f.failed = ""
		return
	}
	if text := err.Error(); text != f.failed {
		f.failed = text
		f.log.Warn("existing objects can't be filled; retrying", "error", err)
	}
}

// begin is the first poll.
func (f *Filler) begin(ctx context.Context) error {
	if err := f.poll(ctx); err != nil {
		return err
	}
	return f.skipEmpty(ctx)
}

// poll records that this process runs, and reads the records of others.
func (f *Filler) poll(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	err := f.change(ctx, func(s *state) bool { return s.observe(f.own, f.watcher) })
	others := f.watcher.others()
	f.others.Store(&others)
	f.polls.Add(1)
	return err
}

// disputed reports whether a process with another definition of a work is known to run, and keeps it from being done.
func (f *Filler) disputed(s *state, name string) bool {
	others := f.others.Load()
	return s.disputed(name) && others != nil && (*others)[name]
}

// skipEmpty counts stores without objects as filled, where requests depend on it: those to a new installation are not
// to wait until other processes would have registered. After a reload, this process may write objects by the former
// configuration until it is ready.
func (f *Filler) skipEmpty(ctx context.Context) error {
	if f.skipped || !f.ready() {
		return nil
	}
	for name, w := range f.works {
		if w.trust == nil || f.current.Load().filled(name, w.definition) {
			continue
		}
		if err := backoff.Sleep(ctx, w.store.IndexLag()); err != nil {
			return err
		}
		page, _, err := w.store.Scan(ctx, nil, 1)
		if err == nil && len(page) == 0 {
			err = f.change(ctx, func(s *state) bool { return s.skip(name, w.definition, f.opts.Now().UTC()) })
		}
		if err != nil {
			return err
		}
	}
	f.skipped = true
	return nil
}

// change changes the state, and keeps it as the current one. change returns whether it is to be stored.
func (f *Filler) change(ctx context.Context, change func(*state) bool) error {
	f.changing.Lock()
	defer f.changing.Unlock()
	s, _, err := f.shared.Change(ctx, change)
	if err == nil {
		f.apply(&s)
	}
	return err
}

func (f *Filler) apply(s *state) {
	f.current.Store(s)
	for name, w := range f.works {
		if w.trust != nil {
			w.trust(s.filled(name, w.definition), s.disputed(name))
		}
	}
}
