// Package outbox carries events from the records that hold them to the bus.
//
// A write puts its event into the record in the same act. Right afterwards
// package store hands the relay a copy, which is published at once together
// with whatever else is in hand, and then cleared from its record. What the
// relay can't keep in memory it forgets: the event is in its record, and a
// sweep of the store finds it. So an event is published at least once, and
// those of one object in the order in which they were handed over.
package outbox

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"belfry/pkg/bus"
	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/store/driver"
)

// Publisher is where events go; *bus.Bus is one.
type Publisher interface {
	// Publish makes the events durable, in their order. *bus.RejectedError names
	// those that will never be taken; any other error leaves open which are
	// there, and the same events are published again.
	Publish(ctx context.Context, events []bus.Event) error

	// Sync returns once everything that Publish accepted before would outlive
	// a power cut. Only then may it leave its record.
	Sync(ctx context.Context) error

	// Live tells whoever listens now.
	Live(name event.Name, payload []byte)
}

// Options of a relay. Zero fields take the defaults given here.
type Options struct {
	Publisher Publisher
	Logger    *slog.Logger // slog.Default()

	SweepEvery time.Duration // between searches for what other processes left; 30 s
	SweepAge   time.Duration // how old an event is that was left; 10 s

	MaxEvents int // events in memory; 20,000
	MaxBytes  int // bytes of them; 32 MiB

	// Observe, when not nil, is told of every batch that was published and how
	// long that took.
	Observe func(events int, took time.Duration)
}

func (o Options) withDefaults() Options {
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.SweepEvery <= 0 {
		o.SweepEvery = 30 * time.Second
	}
	if o.SweepAge <= 0 {
		o.SweepAge = 10 * time.Second
	}
	if o.MaxEvents <= 0 {
		o.MaxEvents = 20_000
	}
	if o.MaxBytes <= 0 {
		o.MaxBytes = 32 << 20
	}
	return o
}

// Relay publishes the events of the stores that were added to it. Its methods
// are safe for concurrent use.
type Relay struct {
	opts     Options
	log      *slog.Logger
	counters counters

	life    context.Context // of everything but clearing
	end     context.CancelFunc
	tidy    context.Context // of clearing, which goes on while the relay closes
	endTidy context.CancelFunc
	loop    sync.WaitGroup
	keepers sync.WaitGroup
	kick    chan struct{} // hears that there may be something to publish
	hurry   chan struct{} // hears that a delayed attempt is wanted now

	mu       sync.Mutex
	sources  []*source
	byName   map[string]*source
	turn     int           // the source that comes first in the next batch
	held     int           // events in memory, queued or being published
	bytes    int           // of their payloads
	progress chan struct{} // closed, and replaced, when something was published or could not be
	failed   time.Time     // when the latest attempt began that failed
	closing  bool
}

// NewRelay makes a relay and starts it.
func NewRelay(opts Options) *Relay {
	r := &Relay{
		opts:     opts.withDefaults(),
		kick:     make(chan struct{}, 1),
		hurry:    make(chan struct{}, 1),
		byName:   map[string]*source{},
		progress: make(chan struct{}),
	}
	r.log = r.opts.Logger
	r.life, r.end = context.WithCancel(context.Background())
	r.tidy, r.endTidy = context.WithCancel(context.Background())
	r.loop.Go(r.run)
	return r
}

// Add has the relay publish a store's events: those that wait in its records
// now, and from now on what Committed hands over.
func (r *Relay) Add(name string, s driver.Store) {
	src := &source{relay: r, name: name, store: s, marked: true, wake: make(chan struct{}, 1)}
	r.mu.Lock()
	r.sources = append(r.sources, src)
	r.byName[name] = src
	r.mu.Unlock()
	r.keepers.Go(src.keep)
	r.nudge()
}

// Committed hands over an event right after the write that caused it. It never
// blocks. What is over the limits of memory stays in its record alone until
// the store is swept. The store must have been added.
func (r *Relay) Committed(store string, p driver.Pending) {
	r.mu.Lock()
	src := r.byName[store]
	switch {
	case src == nil:
		r.mu.Unlock()
		r.log.Error("an event of a store that the relay does not know", "store", store, "event", p.ID)
		return
	case src.marked:
		r.counters.dropped.Add(1)
	case r.held >= r.opts.MaxEvents || r.bytes+len(p.Payload) > r.opts.MaxBytes:
		src.marked = true
		r.counters.dropped.Add(1)
	default:
		src.queue.push(p)
		src.accepted++
		r.held++
		r.bytes += len(p.Payload)
	}
	r.mu.Unlock()
	r.nudge()
}

func (r *Relay) nudge() {
	select {
	case r.kick <- struct{}{}:
	default:
	}
}

// flushPatience is how long Flush goes on with a bus that does not take events.
const flushPatience = time.Second

// Flush waits until everything that was handed over before, and what waited in
// the records of stores as they were added, has been published. It reports
// errs.Unavailable soon when the bus does not take events, and errs.Canceled
// when ctx or the relay ends first.
func (r *Relay) Flush(ctx context.Context) error {
	began := time.Now()
	select {
	case r.hurry <- struct{}{}:
	default:
	}
	r.mu.Lock()
	targets := make([]target, len(r.sources))
	for i, src := range r.sources {
		targets[i] = src.target()
	}
	for !reached(targets) {
		if r.failed.Sub(began) > flushPatience {
			r.mu.Unlock()
			return errs.New(errs.Unavailable, "the bus does not take events now; those that wait are safe in their records")
		}
		progress := r.progress
		r.mu.Unlock()
		select {
		case <-progress:
		case <-ctx.Done():
			return errs.Wrap(ctx.Err(), errs.Canceled, "events still wait to be published; they are safe in their records")
		case <-r.life.Done():
			return errs.New(errs.Canceled, "the relay was closed while events waited to be published; they are safe in their records")
		}
		r.mu.Lock()
	}
	r.mu.Unlock()
	return nil
}

// Close publishes what is in hand and clears it, as far as Flush gets, and
// ends the relay. Nothing may be handed over any more.
func (r *Relay) Close(ctx context.Context) error {
	defer r.endTidy()
	defer context.AfterFunc(ctx, r.endTidy)()
	err := r.Flush(ctx)
	r.end()
	r.loop.Wait()
	r.mu.Lock()
	r.closing = true
	for _, src := range r.sources {
		src.nudge()
	}
	r.mu.Unlock()
	r.keepers.Wait()
	return err
}
