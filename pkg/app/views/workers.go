package views

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"belfry/pkg/api/console"
	"belfry/pkg/app/messaging"
	"belfry/pkg/app/serving"
	"belfry/pkg/bus"
	"belfry/pkg/bus/eventlog"
	"belfry/pkg/listener/deadletter"
	"belfry/pkg/listener/replay"
	"belfry/pkg/missed"
)

// The states of listeners are kept for the last hour. The number of listeners is limited, since any user of the bus may
// be able to create consumers.
const (
	sampleInterval = 15 * time.Second
	sampleSpan     = time.Hour
	maxSampled     = 200
)

// consoleWorkers implements console.Workers.
type consoleWorkers struct {
	served *serving.Current
	log    func() []missed.Status // what listeners have missed
	copies func(ctx context.Context) []missed.CopyLag

	mu      sync.Mutex
	samples map[string][]console.Sample // by listener
}

var _ console.Workers = (*consoleWorkers)(nil)

func newConsoleWorkers(
	served *serving.Current, log func() []missed.Status, copies func(ctx context.Context) []missed.CopyLag,
) *consoleWorkers {
	return &consoleWorkers{served: served, log: log, copies: copies, samples: map[string][]console.Sample{}}
}

// measure adds a sample of each listener.
func (w *consoleWorkers) measure(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, sampleInterval)
	defer cancel()
	// While the bus is unavailable, or denies the request, nothing is measured. Other parts report this.
	if all, err := messaging.Listeners(ctx, w.bus()); err == nil {
		w.add(time.Now(), all)
	}
	return true
}

func (w *consoleWorkers) bus() *bus.Bus { return w.served.Now().Bus }

// add stores the states of listeners, and drops those that are older than an hour.
func (w *consoleWorkers) add(now time.Time, all []*replay.Listener) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, l := range all[:min(len(all), maxSampled)] {
		w.samples[l.Name] = append(w.samples[l.Name],
			console.Sample{At: now, Lag: l.Lag, Unacked: uint64(max(l.Unacked, 0))})
	}
	for name, samples := range w.samples {
		samples = slices.DeleteFunc(samples, func(s console.Sample) bool { return now.Sub(s.At) > sampleSpan })
		if w.samples[name] = samples; len(samples) == 0 {
			delete(w.samples, name)
		}
	}
}

// History implements console.Workers.
func (w *consoleWorkers) History(name string) []console.Sample {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.samples[name])
}

// Measured implements console.Workers.
func (w *consoleWorkers) Measured() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Sorted(maps.Keys(w.samples))
}

// Listeners implements console.Workers.
func (w *consoleWorkers) Listeners(ctx context.Context) ([]console.Worker, error) {
	all, err := messaging.Listeners(ctx, w.bus())
	if err != nil {
		return nil, err
	}
	missed := w.missed()
	workers := make([]console.Worker, len(all))
	for i, l := range all {
		workers[i] = console.Worker{Listener: *l}
		for _, consumer := range l.Consumers {
			if text := missed[consumer]; text != "" {
				workers[i].Missed = text
			}
		}
	}
	return workers, nil
}

// Copies implements console.Workers.
func (w *consoleWorkers) Copies(ctx context.Context) []missed.CopyLag { return w.copies(ctx) }

// missed returns what consumers have missed, as far as it is neither repaired nor confirmed.
func (w *consoleWorkers) missed() map[string]string {
	all := map[string]string{}
	for _, s := range w.log() {
		if s.Open() {
			all[s.Consumer] = "This listener has missed " + s.Count() + " events since " +
				s.Since.UTC().Format(time.RFC3339) +
				": the log is " + string(s.Reason) + ". `belfry listener confirm` marks this as resolved."
		}
	}
	return all
}

// Reset implements console.Workers.
func (w *consoleWorkers) Reset(ctx context.Context, name, from string) (uint64, error) {
	place, err := eventlog.ParseFrom(from)
	if err != nil {
		return 0, err
	}
	var sequence uint64
	err = messaging.Permitted(ctx, w.bus(), "reset listeners", "belfry listener reset",
		[]string{messaging.ConsumerList, "$JS.API.CONSUMER.RESET", "$JS.API.CONSUMER.CREATE"},
		func(ctx context.Context) error {
			sequence, err = replay.Reset(ctx, w.bus().JetStream(), name, place)
			return err
		})
	return sequence, err
}

// Letters implements console.Workers.
func (w *consoleWorkers) Letters(ctx context.Context, listener string, after uint64,
	limit int) (page []*deadletter.Letter, more bool, err error) {
	err = messaging.Permitted(ctx, w.bus(), "read dead letters", "belfry dlq list",
		[]string{messaging.DeadInfo, messaging.DeadPages}, func(ctx context.Context) error {
			page, more, err = deadletter.Page(ctx, w.bus(), listener, after, limit)
			return err
		})
	return page, more, err
}

// Letter implements console.Workers.
func (w *consoleWorkers) Letter(ctx context.Context, id uint64) (l *deadletter.Letter, err error) {
	err = messaging.Permitted(ctx, w.bus(), "read dead letters", "belfry dlq show",
		[]string{messaging.DeadInfo, messaging.DeadGet, messaging.DeadDirect}, func(ctx context.Context) error {
			l, err = deadletter.Get(ctx, w.bus(), id)
			return err
		})
	return l, err
}

// Retry implements console.Workers.
func (w *consoleWorkers) Retry(ctx context.Context, id uint64) error {
	return messaging.Permitted(ctx, w.bus(), "retry dead letters", "belfry dlq retry",
		[]string{messaging.DeadInfo, messaging.DeadGet, messaging.DeadDirect, messaging.DeadDelete, messaging.Retries},
		func(ctx context.Context) error {
			return deadletter.Retry(ctx, w.bus(), id)
		})
}

// Drop implements console.Workers.
func (w *consoleWorkers) Drop(ctx context.Context, id uint64) error {
	return messaging.Permitted(ctx, w.bus(), "drop dead letters", "belfry dlq drop",
		[]string{messaging.DeadInfo, messaging.DeadDelete}, func(ctx context.Context) error {
			return deadletter.Drop(ctx, w.bus(), id)
		})
}
