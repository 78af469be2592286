package listener

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"belfry/internal/backoff"
	"belfry/pkg/bus"
	"belfry/pkg/errs"
	"belfry/pkg/event"
)

const stream = bus.StreamEvents

const (
	setupTimeout = 2 * time.Second // a bus that has just started may drop a request
	retryMin     = 100 * time.Millisecond
	retryMax     = 5 * time.Second
	heartbeats   = 3               // of an event within AckWait
	stableAfter  = 5 * time.Second // an outage after that is logged again

	severalAttempts = 8           // of an event that keeps failing
	warningGap      = time.Minute // between two warnings of events that keep failing
	stepWarningGap  = time.Hour   // between two warnings of steps of the bus's clock
)

// Run runs a listener until ctx ends, across outages of the bus, and returns when
// the events in flight have been handled, or Spec.Drain has passed. It reports
// errs.Invalid for a spec that can't work.
func Run(ctx context.Context, b Bus, log *slog.Logger, spec Spec) error {
	if err := spec.validate(); err != nil {
		return err
	}
	spec = spec.withDefaults()
	runners := newRunners(b, log, spec)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	all := make([]error, len(runners))
	var running sync.WaitGroup
	for i, r := range runners {
		r.isolation = runners[0].isolation
		running.Go(func() {
			all[i] = r.run(ctx)
			if all[i] != nil {
				cancel() // a listener does not run without one of its consumers
			}
		})
	}
	running.Wait()
	return errors.Join(all...)
}

// newRunners returns the runners of a listener's consumers, that of retries first.
func newRunners(b Bus, log *slog.Logger, spec Spec) []*runner {
	runners := []*runner{newRetryRunner(b, log, spec)}
	if !spec.Ordered {
		return append(runners, newRunner(b, log, spec, spec.Name, spec.Filters))
	}
	for p := range event.Partitions {
		runners = append(runners,
			newRunner(b, log, spec, partitionConsumer(spec.Name, p), partitionFilters(spec.Filters, p)))
	}
	return runners
}

// partitionConsumer is the consumer of one partition of an ordered listener.
func partitionConsumer(name string, partition int) string {
	return fmt.Sprintf("%s-%d", name, partition)
}

// partitionFilters narrows subjects of the log to one partition.
func partitionFilters(filters []string, partition int) []string {
	narrowed := make([]string, len(filters))
	for i, f := range filters {
		rest := strings.TrimPrefix(f, event.LogPrefix)
		if rest != ">" {
			_, rest, _ = strings.Cut(rest, ".")
		}
		narrowed[i] = fmt.Sprintf("%s%d.%s", event.LogPrefix, partition, rest)
	}
	return narrowed
}

// runner runs a listener on one of its consumers.
type runner struct {
	spec     Spec
	stream   string
	consumer string   // its name
	filters  []string // its subjects
	handle   Handler
	bus      Bus
	log      *slog.Logger

	isolation *sync.RWMutex // shared by the listener's runners, see crash.go
	inFlight  *inFlight
	clock     busClock
	renewals  renewals
	window    *prefetchWindow
	queue     chan *delivery // events that wait for a worker
	workers   int            // that were started, each for an event that the others had no time for
	held      atomic.Int64   // events in the queue, and workers that handle some
	warnings  rate.Sometimes // of events that keep failing
	steps     rate.Sometimes // warnings of steps of the bus's clock
	handling  sync.WaitGroup
	stopping  context.Context // ends when the listener is stopped

	began   time.Time // when Run was called
	existed bool      // the consumer has existed since
	floor   uint64    // of the consumer: everything up to this sequence is acknowledged
	differs sync.Once // that the consumer differs is logged once
}

func newRunner(b Bus, log *slog.Logger, spec Spec, consumer string, filters []string) *runner {
	r := &runner{
		spec: spec, stream: stream, consumer: consumer, filters: filters, bus: b, log: log.With("listener", consumer),
		isolation: &sync.RWMutex{}, inFlight: newInFlight(spec.AckWait / heartbeats), began: time.Now(),
		warnings: rate.Sometimes{Interval: warningGap}, steps: rate.Sometimes{Interval: stepWarningGap},
	}
	if spec.Ordered {
		r.spec.Concurrency = 1
	}
	if spec.Handler != nil {
		r.handle = spec.handler()
	}
	r.window = newPrefetchWindow(r.handledAtOnce(), r.spec.Concurrency, spec.Prefetch)
	r.queue = make(chan *delivery, r.handledAtOnce()+spec.Prefetch)
	return r
}

// handledAtOnce is how many events are handled at once at most.
func (r *runner) handledAtOnce() int {
	if r.spec.Batch != nil {
		return r.spec.Concurrency * r.spec.BatchSize
	}
	return r.spec.Concurrency
}

func (r *runner) run(ctx context.Context) error {
	r.stopping = ctx
	go r.inFlight.run()
	err := r.listenUntil(ctx)
	close(r.queue)
	return errors.Join(err, r.drain())
}

// listenUntil retries listen until ctx ends.
func (r *runner) listenUntil(ctx context.Context) error {
	lastLogged := ""
	for delays := backoff.New(retryMin, retryMax); ctx.Err() == nil; {
		began := time.Now()
		err := r.listen(ctx)
		if ctx.Err() != nil {
			break
		}
		if errors.Is(err, errs.Invalid) {
			return err
		}
		if time.Since(began) > stableAfter {
			delays.Reset()
			lastLogged = ""
		}
		if text := err.Error(); text != lastLogged {
			lastLogged = text
			r.log.Warn("the listener can't receive events; retrying", "error", err)
		}
		_ = delays.Wait(ctx)
	}
	return nil //nolint:nilerr // it was stopped
}

// drain waits for the events that are being handled.
func (r *runner) drain() error {
	done := make(chan struct{})
	go func() {
		r.handling.Wait()
		r.inFlight.stop()
		close(done)
	}()
	timer := time.NewTimer(r.spec.Drain)
	defer timer.Stop()
	select {
	case <-done:
		return nil
	case <-timer.C:
		return errs.New(errs.Canceled, "listener %s still handles events after %s; they will be redelivered",
			r.consumer, r.spec.Drain)
	}
}
