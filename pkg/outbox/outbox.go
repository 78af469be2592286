// Package outbox publishes events from the records that hold them to the bus.
//
// A write stores its event in the record atomically (the transactional outbox). Package
// store then hands a copy to the relay. The relay publishes it at once, in a batch with
// other queued events, and clears it from its record.
//
// Events that exceed the relay's memory limits are dropped from memory: a sweep of the
// store finds them in their records. So every event is published at least once, and the
// events of an object in the order in which they were handed over.
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

// Publisher publishes events. *bus.Bus implements it.
type Publisher interface {
	// Publish stores the events in order. It reports *bus.RejectedError with the events
	// that can never be stored; after any other error an unknown part of them is
	// stored, and the same events are published again.
	Publish(ctx context.Context, events []bus.Event) error

	// Sync returns when all events that Publish accepted before survive a power
	// failure. Only then may they be cleared from their records.
	Sync(ctx context.Context) error

	// Live publishes to current subscribers only.
	Live(name event.Name, payload []byte)
}

// Options configures a relay. Zero fields mean the defaults given here.
type Options struct {
	Publisher Publisher
	Logger    *slog.Logger // nil discards the log

	SweepEvery time.Duration // interval of sweeps for events that other processes abandoned; 30 s
	SweepAge   time.Duration // age from which an event counts as abandoned; 10 s

	MaxEvents int // maximum number of events in memory; 20,000
	MaxBytes  int // maximum size of their payloads; 32 MiB

	// Observe, if not nil, is called with the size and duration of each published
	// batch.
	Observe func(events int, took time.Duration)
}

func (o Options) withDefaults() Options {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
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

	ctx         context.Context // of everything except clearing
	cancel      context.CancelFunc
	clearCtx    context.Context // of clearing, which continues while the relay closes
	cancelClear context.CancelFunc
	loop        sync.WaitGroup
	clearers    sync.WaitGroup
	wake        chan struct{} // signals that there may be events to publish
	retryNow    chan struct{} // ends the delay before the next attempt

	mu          sync.Mutex
	sources     []*source
	byName      map[string]*source
	firstSource int           // index of the first source of the next batch
	held        int           // events in memory, queued or being published
	bytes       int           // of their payloads
	progress    chan struct{} // closed and replaced after each attempt to publish
	failed      time.Time     // start of the latest failed attempt
	refusal     string        // why the bus has refused an event for good, most lately
	closing     bool
}

// NewRelay creates and starts a relay.
func NewRelay(opts Options) *Relay {
	r := &Relay{
		opts:     opts.withDefaults(),
		wake:     make(chan struct{}, 1),
		retryNow: make(chan struct{}, 1),
		byName:   map[string]*source{},
		progress: make(chan struct{}),
	}
	r.log = r.opts.Logger
	r.ctx, r.cancel = context.WithCancel(context.Background())
	r.clearCtx, r.cancelClear = context.WithCancel(context.Background())
	r.loop.Go(r.publishLoop)
	return r
}

// Add adds a store: the relay publishes the events that are pending in its records,
// and from then on those passed to Committed.
func (r *Relay) Add(name string, s driver.Store) {
	src := &source{relay: r, name: name, store: s, incomplete: true, wake: make(chan struct{}, 1)}
	r.mu.Lock()
	r.sources = append(r.sources, src)
	r.byName[name] = src
	r.mu.Unlock()
	r.clearers.Go(src.run)
	r.notify()
}

// Committed hands over an event after the write that caused it. It never blocks. An
// event that exceeds the memory limits is published by a sweep of the store. The
// store must have been added.
func (r *Relay) Committed(store string, p driver.Pending) {
	r.mu.Lock()
	src := r.byName[store]
	switch {
	case src == nil:
		r.mu.Unlock()
		r.log.Error("outbox: an event of a store that was not added to the relay", "store", store, "event", p.ID)
		return
	case src.incomplete:
		r.counters.dropped.Add(1)
	case r.held >= r.opts.MaxEvents || r.bytes+len(p.Payload) > r.opts.MaxBytes:
		src.incomplete = true
		r.counters.dropped.Add(1)
	default:
		src.queue.push(p)
		src.accepted++
		r.held++
		r.bytes += len(p.Payload)
	}
	r.mu.Unlock()
	r.notify()
}

func (r *Relay) notify() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// flushGrace is how long Flush keeps trying while publishing fails.
const flushGrace = time.Second

// Flush waits until all events that were handed over before, and those that were
// pending in the records of stores when they were added, have been published. It
// reports errs.Unavailable soon when publishing fails, and errs.Canceled when ctx or
// the relay ends first.
func (r *Relay) Flush(ctx context.Context) error {
	began := time.Now()
	select {
	case r.retryNow <- struct{}{}:
	default:
	}
	r.mu.Lock()
	targets := make([]target, len(r.sources))
	for i, src := range r.sources {
		targets[i] = src.target()
	}
	for !reached(targets) {
		if r.failed.Sub(began) > flushGrace {
			r.mu.Unlock()
			return errs.New(errs.Unavailable, "outbox: publishing fails; unpublished events stay in their records")
		}
		progress := r.progress
		r.mu.Unlock()
		select {
		case <-progress:
		case <-ctx.Done():
			return errs.Wrap(ctx.Err(), errs.Canceled, "outbox: unpublished events stay in their records")
		case <-r.ctx.Done():
			return errs.New(errs.Canceled, "outbox: the relay was closed; unpublished events stay in their records")
		}
		r.mu.Lock()
	}
	r.mu.Unlock()
	return nil
}

// Close publishes and clears the queued events, as far as Flush succeeds, and stops the
// relay. Committed must not be called afterwards.
func (r *Relay) Close(ctx context.Context) error {
	defer r.cancelClear()
	defer context.AfterFunc(ctx, r.cancelClear)()
	err := r.Flush(ctx)
	r.cancel()
	r.loop.Wait()
	r.mu.Lock()
	r.closing = true
	for _, src := range r.sources {
		src.notify()
	}
	r.mu.Unlock()
	r.clearers.Wait()
	return err
}
