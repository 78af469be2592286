package app

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"belfry/pkg/api/console"
	"belfry/pkg/bus"
	"belfry/pkg/bus/eventlog"
	"belfry/pkg/errs"
	"belfry/pkg/listener/deadletter"
	"belfry/pkg/listener/replay"
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
		// While the bus is unavailable, or denies it, there is nothing to measure, and others report it.
		if all, err := a.listeners(ctx); err == nil {
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

// Measured implements console.Workers.
func (w *consoleWorkers) Measured() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Sorted(maps.Keys(w.samples))
}

// Listeners implements console.Workers.
func (w *consoleWorkers) Listeners(ctx context.Context) ([]console.Worker, error) {
	all, err := w.app.listeners(ctx)
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
	var sequence uint64
	err = w.app.permitted(ctx, "reset listeners", "belfry listener reset", []string{consumerList, "$JS.API.CONSUMER.RESET", "$JS.API.CONSUMER.CREATE"}, func(ctx context.Context) error {
		sequence, err = replay.Reset(ctx, w.app.bus.JetStream(), name, place)
		return err
	})
	return sequence, err
}

// Subjects of requests to the bus, some of which its user may lack: nats.conf gives a front few permissions.
const (
	consumerList = "$JS.API.CONSUMER.LIST"
	deadInfo     = "$JS.API.STREAM.INFO." + bus.StreamDead
	deadPages    = "$JS.API.CONSUMER.CREATE." + bus.StreamDead
	deadGet      = "$JS.API.STREAM.MSG.GET." + bus.StreamDead
	deadDirect   = "$JS.API.DIRECT.GET." + bus.StreamDead
	deadDelete   = "$JS.API.STREAM.MSG.DELETE." + bus.StreamDead
	retries      = "retry" // and below
)

// permitted does what needs permissions on the bus. It reports Denied, with the command that an admin of the bus can use instead, as soon as
// the bus denies a request on one of the subjects: it sends no reply to those.
func (a *App) permitted(ctx context.Context, what, command string, subjects []string, do func(ctx context.Context) error) error {
	ctx, stop := a.bus.UntilDenied(ctx, subjects...)
	defer stop()
	err := a.askBus(ctx, do)
	if err != nil && errors.Is(context.Cause(ctx), bus.ErrPermissionDenied) {
		return errs.Wrap(err, errs.Denied, "the user of the bus that this process has may not %s: use `%s` as the admin of the bus, or grant the user what docs/reference/bus.md lists for the console", what, command)
	}
	return err
}

// askBus sends requests to the bus. It reports errs.Unavailable at once where there is no connection, and when it is lost:
// the requests would wait for their timeouts.
func (a *App) askBus(ctx context.Context, do func(ctx context.Context) error) error {
	if err := a.bus.Connected(); err != nil {
		return err
	}
	connected, stop := a.bus.WhileConnected(ctx)
	defer stop()
	err := do(connected)
	if err != nil && connected.Err() != nil && ctx.Err() == nil {
		return errs.Wrap(err, errs.Unavailable, "the bus is unavailable: the connection was lost meanwhile")
	}
	return err
}

// listeners returns the state of all listeners.
func (a *App) listeners(ctx context.Context) (all []*replay.Listener, err error) {
	err = a.permitted(ctx, "list the listeners", "belfry listener list", []string{consumerList, "$JS.API.STREAM.INFO"}, func(ctx context.Context) error {
		all, err = replay.List(ctx, a.bus.JetStream())
		return err
	})
	return all, err
}

// Letters implements console.Workers.
func (w *consoleWorkers) Letters(ctx context.Context, listener string, after uint64, limit int) (page []*deadletter.Letter, more bool, err error) {
	err = w.app.permitted(ctx, "read dead letters", "belfry dlq list", []string{deadInfo, deadPages}, func(ctx context.Context) error {
		page, more, err = deadletter.Page(ctx, w.app.bus, listener, after, limit)
		return err
	})
	return page, more, err
}

// Letter implements console.Workers.
func (w *consoleWorkers) Letter(ctx context.Context, id uint64) (l *deadletter.Letter, err error) {
	err = w.app.permitted(ctx, "read dead letters", "belfry dlq show", []string{deadInfo, deadGet, deadDirect}, func(ctx context.Context) error {
		l, err = deadletter.Get(ctx, w.app.bus, id)
		return err
	})
	return l, err
}

// Retry implements console.Workers.
func (w *consoleWorkers) Retry(ctx context.Context, id uint64) error {
	return w.app.permitted(ctx, "retry dead letters", "belfry dlq retry", []string{deadInfo, deadGet, deadDirect, deadDelete, retries}, func(ctx context.Context) error {
		return deadletter.Retry(ctx, w.app.bus, id)
	})
}

// Drop implements console.Workers.
func (w *consoleWorkers) Drop(ctx context.Context, id uint64) error {
	return w.app.permitted(ctx, "drop dead letters", "belfry dlq drop", []string{deadInfo, deadDelete}, func(ctx context.Context) error {
		return deadletter.Drop(ctx, w.app.bus, id)
	})
}
