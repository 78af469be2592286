package app

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"

	"belfry/pkg/app/part"
	"belfry/pkg/errs"
	"belfry/pkg/listener"
)

// listeners runs built-in listeners.
type listeners struct {
	bus     func() listener.Bus
	log     *slog.Logger
	missing *missingConsumers
	fail    func(error)
	running map[string]*running // by name
}

// running is a listener that runs.
type running struct {
	stop context.CancelFunc
	done chan struct{}
}

func newListeners(a *App) *listeners {
	return &listeners{bus: func() listener.Bus { return a.bus }, log: a.log, missing: &a.missing, fail: a.fail, running: map[string]*running{}}
}

// run runs the listeners of those that select events.
func (l *listeners) run(g *serving, specs []listener.Spec) {
	for _, spec := range specs {
		if len(spec.Filters) == 0 {
			continue
		}
		spec.OnSetupError = l.missing.set
		g.traceEvents(&spec)
		ctx, cancel := context.WithCancel(context.Background())
		r := &running{stop: cancel, done: make(chan struct{})}
		l.running[spec.Name] = r
		go func() {
			defer close(r.done)
			if err := listener.Run(ctx, l.bus(), l.log, spec); err != nil && ctx.Err() == nil {
				l.fail(errs.Wrap(err, errs.KindOf(err), "listener %s has ended", spec.Name))
			}
		}()
	}
}

// reload prepares the listeners whose events, or traces, another configuration changes. What these receive is added first, so that no
// event of what is served next is missed.
func (l *listeners) reload(ctx context.Context, next *serving, before, now []listener.Spec) (part.Change, error) {
	var changed []listener.Spec
	for i, spec := range now {
		if slices.Equal(before[i].Filters, spec.Filters) && next.tracer == next.served.now().tracer {
			continue
		}
		changed = append(changed, spec)
		if len(spec.Filters) == 0 {
			continue
		}
		both := spec
		both.Filters = slices.Compact(slices.Sorted(slices.Values(slices.Concat(before[i].Filters, spec.Filters))))
		if _, err := listener.Setup(ctx, l.bus(), both, false); err != nil {
			return part.Change{}, err
		}
	}
	return part.Change{Apply: func() {
		var ending sync.WaitGroup
		for _, spec := range changed {
			if r := l.running[spec.Name]; r != nil {
				r.stop()
				ending.Go(func() { <-r.done })
				delete(l.running, spec.Name)
			}
		}
		l.run(next, changed)
	}}, nil
}

// stop stops all listeners at once: the events that they hold are handled, or redelivered later if ctx ends first.
func (l *listeners) stop(ctx context.Context) error {
	for _, r := range l.running {
		r.stop()
	}
	for _, name := range slices.Sorted(maps.Keys(l.running)) {
		select {
		case <-l.running[name].done:
		case <-ctx.Done():
			return errs.Wrap(ctx.Err(), errs.Canceled, "events are still in flight; they are redelivered later")
		}
	}
	return nil
}
