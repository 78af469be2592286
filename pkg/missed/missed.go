// Package missed detects that events have left the log before a listener had handled
// them: because the log was lost and is another one, or because its retention is
// shorter than the listener's absence or lag.
//
// The bus can't report that: with its folder it loses the positions of listeners. So a
// Watch stores the identity of the log and each consumer's position in it. It compares
// them with the bus at the start and every Interval. It detects every loss. It may
// report a false one if a listener is within two Intervals of the log's beginning.
//
// After a loss, one process at a time repairs the data that belfry's own listeners
// maintain. The losses of other listeners are reported.
package missed

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"belfry/internal/backoff"
	"belfry/pkg/bus"
	"belfry/pkg/object"
	"belfry/pkg/store"
)

// Interval is how often a Watch reads the bus.
const Interval = 10 * time.Second

const (
	firstInterval = 500 * time.Millisecond
	pollTimeout   = 10 * time.Second
	endTimeout    = 2 * time.Second
	idleRefresh   = 5 * time.Minute  // how often the state is stored while nothing changes
	leaseTime     = 30 * time.Second // without renewal until another process repairs
	retryMin      = 10 * time.Second
	retryMax      = 10 * time.Minute
)

// Options configure a Watch. All but Conn, Ignored and Interval are required.
type Options struct {
	Bus    bus.Requester
	Conn   *nats.Conn   // serves requests of commands; nil: none
	Store  *store.Store // holds the state
	Logger *slog.Logger

	// BuiltIn returns the names of belfry's own consumers, which are read one by one where
	// the permission to list all is missing. A reload may add some.
	BuiltIn func() []string

	// Copies returns how far copies are behind, for requests; nil: not known.
	Copies func(ctx context.Context) []CopyLag

	// Ignored are consumers that work without events.
	Ignored []string

	// Repairs make up for what consumers have missed, those that this process can.
	Repairs []Repair

	Interval time.Duration // 0: Interval
}

// Repair corrects the data that missed events would have changed. One process at a time does. loss identifies the
// missed events: a process that continues after a crash gets the same loss. It changes once consumers have missed more.
type Repair struct {
	Consumers []string
	Do        func(ctx context.Context, loss string) error
}

// Watch compares the bus with its stored state. Its methods are safe for
// concurrent use.
type Watch struct {
	opts     Options
	log      *slog.Logger
	instance string
	cancel   context.CancelFunc
	running  sync.WaitGroup
	subs     []*nats.Subscription

	repairs *backoff.Backoff
	nextTry time.Time         // of a repair that failed
	making  map[int]time.Time // the repairs that this process makes, by their index, and since when; used by run alone
	blind   bool              // the permission to read events is missing; used by run alone
	done    chan outcome

	mu       sync.Mutex
	current  state
	revision uint64 // of current
	failed   string // the last error, so that it is logged once
}

// Start starts a watch. It compares at once, and then every Interval.
func Start(o Options) (*Watch, error) {
	if o.Interval <= 0 {
		o.Interval = Interval
	}
	w := &Watch{
		opts: o, log: o.Logger, instance: object.NewUUID(), done: make(chan outcome, len(o.Repairs)),
		making: map[int]time.Time{}, repairs: backoff.New(retryMin, retryMax),
	}
	if err := w.subscribe(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	w.cancel = cancel
	w.running.Go(func() { w.run(ctx) })
	return w, nil
}

// Close ends the watch, and a repair that runs: the next start continues it.
func (w *Watch) Close() {
	for _, s := range w.subs {
		_ = s.Unsubscribe() // fails when the connection is closed already
	}
	w.cancel()
	w.running.Wait()
}

// Status is the loss of a consumer.
type Status struct {
	Consumer string `json:"consumer"`
	Gone     bool   `json:"gone,omitempty"` // the consumer does not exist
	Missed
}

// Missed returns what consumers have missed, in the order of their names, as of the
// last comparison.
func (w *Watch) Missed() []Status {
	w.mu.Lock()
	defer w.mu.Unlock()
	var all []Status
	for _, name := range slices.Sorted(maps.Keys(w.current.Consumers)) {
		if p := w.current.Consumers[name]; p.Missed != nil {
			all = append(all, Status{Consumer: name, Gone: !p.Gone.IsZero(), Missed: *p.Missed})
		}
	}
	return all
}

func (w *Watch) run(ctx context.Context) {
	defer w.end(ctx)
	// Soon again after the start, when consumers are created.
	for wait := min(firstInterval, w.opts.Interval); ; wait = min(2*wait, w.opts.Interval) {
		w.poll(ctx)
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		case o := <-w.done:
			timer.Stop()
			w.endRepair(ctx, o)
		}
	}
}

// end waits for repairs to end, and leaves them to another process. It compares for the
// last time, so that events that were handled before a stop do not count as missed after it.
func (w *Watch) end(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
	defer cancel()
	if len(w.making) > 0 {
		for range w.making {
			if o := <-w.done; o.err != nil {
				w.log.Info("the repair is left to the next process", "reason", o.err)
			}
		}
		w.retry(ctx, func(s *state) bool { return s.release(w.instance) })
	}
	if w.opts.Bus.JetStream().Conn().IsConnected() {
		_ = w.compare(ctx) // what it would store is stored after the next start
	}
}
