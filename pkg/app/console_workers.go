package app

import (
	"context"
	"slices"
	"sync"
	"time"

	"belfry/pkg/bus/deadletter"
	"belfry/pkg/bus/eventlog"
	"belfry/pkg/bus/replay"
	"belfry/pkg/console"
)

// The states of listeners are measured for the last hour. Only so many listeners are remembered, since anybody who
// may use the bus can make consumers.
const (
	sampleInterval = 15 * time.Second
	sampleSpan     = time.Hour
	maxSampled     = 200
)

// consoleWorkers implements console.Workers.
type consoleWorkers struct {
	app *App

	mu      sync.Mutex
	samples map[string][]console.Sample // by listener
}

var _ console.Workers = (*consoleWorkers)(nil)

// newConsoleWorkers starts measuring.
func (a *App) newConsoleWorkers() *consoleWorkers {
	w := &consoleWorkers{app: a, samples: map[string][]console.Sample{}}
	measure := func(ctx context.Context) bool {
		ctx, cancel := context.WithTimeout(ctx, sampleInterval)
		defer cancel()
		// While the bus is unavailable there is nothing to measure, and others report it.
		if all, err := replay.List(ctx, a.bus.JetStream()); err == nil {
			w.add(time.Now(), all)
		}
		return true
	}
	a.every(sampleInterval, "measuring listeners", measure)
	return w
}

// add remembers the states of listeners, and forgets those of an hour ago.
func (w *consoleWorkers) add(now time.Time, all []*replay.Listener) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, l := range all[:min(len(all), maxSampled)] {
		w.samples[l.Name] = append(w.samples[l.Name], console.Sample{At: now, Lag: l.Lag, Unacked: uint64(max(l.Unacked, 0))})
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

// Listeners implements console.Workers.
func (w *consoleWorkers) Listeners(ctx context.Context) ([]console.Worker, error) {
	all, err := replay.List(ctx, w.app.bus.JetStream())
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

// missed returns what consumers have missed that is neither repaired nor confirmed.
func (w *consoleWorkers) missed() map[string]string {
	all := map[string]string{}
	if w.app.missed == nil {
		return all
	}
	for _, s := range w.app.missed.Missed() {
		if s.Open() {
			all[s.Consumer] = "This listener has missed " + s.Count() + " events since " + s.Since.UTC().Format(time.RFC3339) +
				": the log is " + string(s.Reason) + ". `belfry listener confirm` says that this is dealt with."
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
	return replay.Reset(ctx, w.app.bus.JetStream(), name, place)
}

// Letters implements console.Workers.
func (w *consoleWorkers) Letters(ctx context.Context, listener string, after uint64, limit int) ([]*deadletter.Letter, bool, error) {
	return deadletter.Page(ctx, w.app.bus, listener, after, limit)
}

// Letter implements console.Workers.
func (w *consoleWorkers) Letter(ctx context.Context, id uint64) (*deadletter.Letter, error) {
	return deadletter.Get(ctx, w.app.bus, id)
}

// Retry implements console.Workers.
func (w *consoleWorkers) Retry(ctx context.Context, id uint64) error {
	return deadletter.Retry(ctx, w.app.bus, id)
}

// Drop implements console.Workers.
func (w *consoleWorkers) Drop(ctx context.Context, id uint64) error {
	return deadletter.Drop(ctx, w.app.bus, id)
}
