package workers

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"belfry/pkg/app/part"
	"belfry/pkg/app/serving"
	"belfry/pkg/bus"
	"belfry/pkg/errs"
	"belfry/pkg/listener"
)

// Runner runs built-in listeners.
type Runner struct {
	Log     *slog.Logger
	Missing *Missing
	Fail    func(error)

	running map[string]*running // by name
	ending  []*running          // those that a reload has replaced, while they handle their last events
}

// running is a listener that runs.
type running struct {
	stop context.CancelFunc
	done chan struct{}
}

// ended reports whether the listener has handled its last events.
func (r *running) ended() bool {
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}

// run runs the listeners that select events.
func (l *Runner) run(g *serving.Generation, specs []listener.Spec) {
	if l.running == nil {
		l.running = map[string]*running{}
	}
	for _, spec := range specs {
		if len(spec.Filters) == 0 {
			continue
		}
		spec.OnSetupError = l.Missing.set
		g.TraceEvents(&spec)
		ctx, cancel := context.WithCancel(context.Background())
		r := &running{stop: cancel, done: make(chan struct{})}
		l.running[spec.Name] = r
		go func() {
			defer close(r.done)
			if err := listener.Run(ctx, g.Bus, l.Log, spec); err != nil && ctx.Err() == nil {
				l.Fail(errs.Wrap(err, errs.KindOf(err), "listener %s has ended", spec.Name))
			}
		}()
	}
}

// change prepares the listeners whose events, or traces, another configuration changes. It first adds the new events of
// these listeners, so that they miss no event of the next generation.
func (l *Runner) change(ctx context.Context, before, next *serving.Generation,
	was, now []listener.Spec) (part.Change, error) {
	var changed, widened []listener.Spec
	cancel := func() { l.narrow(context.WithoutCancel(ctx), next.Bus, widened) }
	for i, spec := range now {
		if slices.Equal(was[i].Filters, spec.Filters) && next.Tracer == before.Tracer {
			continue
		}
		changed = append(changed, spec)
		if len(spec.Filters) == 0 {
			continue
		}
		if len(was[i].Filters) > 0 {
			widened = append(widened, was[i])
		}
		both := spec
		both.Filters = slices.Compact(slices.Sorted(slices.Values(slices.Concat(was[i].Filters, spec.Filters))))
		if err := listener.Update(ctx, next.Bus, both); err != nil {
			cancel()
			return part.Change{}, err
		}
	}
	return part.Change{Cancel: cancel, Apply: func() {
		l.ending = slices.DeleteFunc(l.ending, (*running).ended)
		for _, spec := range changed {
			if r := l.running[spec.Name]; r != nil {
				r.stop()
				l.ending = append(l.ending, r)
				delete(l.running, spec.Name)
			}
			if len(spec.Filters) == 0 {
				l.Missing.forget(spec.Name)
			}
		}
		l.run(next, changed)
	}}, nil
}

// narrowTimeout is how long a reload that fails waits for the bus.
const narrowTimeout = 10 * time.Second

// narrow has listeners receive only their own events again, after a reload that has failed.
func (l *Runner) narrow(ctx context.Context, b *bus.Bus, specs []listener.Spec) {
	ctx, cancel := context.WithTimeout(ctx, narrowTimeout)
	defer cancel()
	for _, spec := range specs {
		if err := listener.Update(ctx, b, spec); err != nil {
			l.Log.Warn("a listener also receives the events of the configuration that could not be reloaded, and "+
				"ignores them: `belfry bus setup` ends that", "listener", spec.Name, "error", err)
		}
	}
}

// end stops all listeners at once: the events that they hold are handled, or redelivered later if ctx ends first.
func (l *Runner) end(ctx context.Context) error {
	for _, r := range l.running {
		r.stop()
	}
	for _, r := range slices.AppendSeq(l.ending, maps.Values(l.running)) {
		select {
		case <-r.done:
		case <-ctx.Done():
			return errs.Wrap(ctx.Err(), errs.Canceled, "events are still in flight; they are redelivered later")
		}
	}
	return nil
}

// Missing holds why consumers of built-in listeners are missing, by name.
type Missing struct {
	mu      sync.Mutex
	reasons map[string]error
}

// set records why a consumer is missing, or, with nil, that it exists.
func (m *Missing) set(consumer string, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.reasons == nil {
		m.reasons = map[string]error{}
	}
	if err == nil {
		delete(m.reasons, consumer)
		return
	}
	m.reasons[consumer] = err
}

// forget drops the reasons of a listener that a reload has ended.
func (m *Missing) forget(listener string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	maps.DeleteFunc(m.reasons, func(consumer string, _ error) bool { return strings.HasSuffix(consumer, "."+listener) })
}

// Err returns why a built-in listener can't receive events; nil if all can.
func (m *Missing) Err() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, consumer := range slices.Sorted(maps.Keys(m.reasons)) {
		return bus.Unavailable(m.reasons[consumer], "a built-in listener can't receive events")
	}
	return nil
}
