package listener

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"belfry/pkg/backoff"
	"belfry/pkg/bus"
	"belfry/pkg/errs"
	"belfry/pkg/event"
)

const stream = bus.StreamEvents

const (
	setupTimeout = 2 * time.Second // a bus that has just started may pass over a request
	againMin     = 100 * time.Millisecond
	againMax     = 5 * time.Second
	signs        = 3               // of life of an event in AckWait
	wellAfter    = 5 * time.Second // an outage that follows is another one
)

// Run runs a listener until ctx ends, through whatever absences of the bus, and
// returns when what was in hand has been handled, or Spec.Drain has passed.
// It reports errs.Invalid for a spec that can't work.
func Run(ctx context.Context, b Bus, log *slog.Logger, spec Spec) error {
	if err := spec.check(); err != nil {
		return err
	}
	spec = spec.withDefaults()
	runners := newRunners(b, log, spec)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	all := make([]error, len(runners))
	var running sync.WaitGroup
	for i, r := range runners {
		r.gate = runners[0].gate
		running.Go(func() {
			all[i] = r.run(ctx)
			if all[i] != nil {
				cancel() // one that can't work is not left out in silence
			}
		})
	}
	running.Wait()
	return errors.Join(all...)
}

// newRunners makes the runners of a listener's consumers: the retries' first.
func newRunners(b Bus, log *slog.Logger, spec Spec) []*runner {
	runners := []*runner{newRetrier(b, log, spec)}
	if !spec.Ordered {
		return append(runners, newRunner(b, log, spec, spec.Name, spec.Filters))
	}
	for p := range event.Partitions {
		runners = append(runners, newRunner(b, log, spec, partitioned(spec.Name, p), ofPartition(spec.Filters, p)))
	}
	return runners
}

// partitioned is the consumer of one partition of an ordered listener.
func partitioned(name string, partition int) string { return fmt.Sprintf("%s-%d", name, partition) }

// ofPartition narrows subjects of the log to one partition.
func ofPartition(filters []string, partition int) []string {
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

// runner is a listener at work on one consumer.
type runner struct {
	spec     Spec
	stream   string
	consumer string   // its name
	filters  []string // its subjects
	handle   Handler
	bus      Bus
	log      *slog.Logger

	gate     *sync.RWMutex  // of all that is handled by the listener
	held     *held          // events that are here
	slots    *slots         // for events that are here
	queue    chan *delivery // events that wait for a hand
	handling sync.WaitGroup
	stopping context.Context // ends when the listener is asked to stop

	began time.Time // when Run was called
	known bool      // the consumer has been there since
}

func newRunner(b Bus, log *slog.Logger, spec Spec, consumer string, filters []string) *runner {
	r := &runner{
		spec: spec, stream: stream, consumer: consumer, filters: filters, bus: b, log: log.With("listener", consumer),
		gate: &sync.RWMutex{}, held: newHeld(spec.AckWait / signs), began: time.Now(),
	}
	if spec.Ordered {
		r.spec.Concurrency = 1
	}
	if spec.Handler != nil {
		r.handle = spec.handler()
	}
	r.slots = newSlots(r.inHand(), r.spec.Concurrency, spec.Prefetch)
	r.queue = make(chan *delivery, r.inHand()+spec.Prefetch)
	return r
}

// inHand is how many events are handled at once at most.
func (r *runner) inHand() int {
	if r.spec.Batch != nil {
		return r.spec.Concurrency * r.spec.BatchSize
	}
	return r.spec.Concurrency
}

func (r *runner) run(ctx context.Context) error {
	r.stopping = ctx
	go r.held.keep()
	for range r.spec.Concurrency {
		r.handling.Go(func() { r.work(context.WithoutCancel(ctx)) })
	}
	err := r.listenOn(ctx)
	close(r.queue)
	return errors.Join(err, r.drain())
}

// listenOn listens again and again until ctx ends.
func (r *runner) listenOn(ctx context.Context) error {
	lastSaid := ""
	for wait := againMin; ctx.Err() == nil; wait = min(2*wait, againMax) {
		began := time.Now()
		err := r.listen(ctx)
		if ctx.Err() != nil {
			break
		}
		if errors.Is(err, errs.Invalid) {
			return err
		}
		if time.Since(began) > wellAfter {
			wait, lastSaid = againMin, ""
		}
		if said := err.Error(); said != lastSaid {
			lastSaid = said
			r.log.Warn("the listener can't listen; trying again", "error", err)
		}
		_ = backoff.Sleep(ctx, wait)
	}
	return nil //nolint:nilerr // it was asked to stop
}

// drain waits for what is in hand.
func (r *runner) drain() error {
	done := make(chan struct{})
	go func() {
		r.handling.Wait()
		r.held.end()
		close(done)
	}()
	timer := time.NewTimer(r.spec.Drain)
	defer timer.Stop()
	select {
	case <-done:
		return nil
	case <-timer.C:
		return errs.New(errs.Canceled, "listener %s still handles events after %s; they come again", r.consumer, r.spec.Drain)
	}
}
