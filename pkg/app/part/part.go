// Package part composes a process of independent parts. They start in order, change together when the configuration is
// reloaded, and stop in the reverse order.
package part

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"

	"belfry/pkg/errs"
)

// Part is a piece of a process. G is the generation that a process serves with one configuration. Parts make it, and a
// reload makes another one, which then replaces it. Every function except Start may be nil.
type Part[G any] struct {
	Name string // for people

	// Beside says that the part starts while the one before it does, whose result it does not use. If it fails, it
	// starts again after that: with a full disk, the part before waits for space. So Start may be called twice.
	Beside bool

	// Start starts the part, and sets the parts of first that serve clients.
	Start func(ctx context.Context, first G) error

	// Reload prepares the part for another configuration. It does not change the current service, because a later part
	// may fail. nil: the part is the same with every configuration, or reads the current generation each time.
	Reload func(ctx context.Context, before, next G) (Change, error)

	// Stop ends the part. It is called once, also if Start has failed.
	Stop func(ctx context.Context) error

	// Check returns problems that an operator should know although the process serves.
	Check func() []string
}

// Change is a prepared change of a part. Every function may be nil, and none fails: everything that may fail is done
// before.
type Change struct {
	Apply  func()                    // when the next configuration is served
	Cancel func()                    // instead of Apply, if another part could not be prepared
	Settle func(ctx context.Context) // after Apply, once nothing writes with the configuration before
	// after Settle, once nothing uses the configuration before: a download can take hours
	Retire func(ctx context.Context)
}

// Before returns the change with a function that Apply calls first.
func (c Change) Before(do func()) Change {
	apply := c.Apply
	c.Apply = func() {
		do()
		if apply != nil {
			apply()
		}
	}
	return c
}

// List is the parts of a process in the order in which they start. Check may be called at any time, and the others one
// at a time.
type List[G any] struct {
	log *slog.Logger

	mu      sync.Mutex
	started []Part[G]
}

// NewList returns a list without parts.
func NewList[G any](log *slog.Logger) *List[G] { return &List[G]{log: log} }

// StartAll starts parts in their order.
func (l *List[G]) StartAll(ctx context.Context, parts []Part[G], first G) error {
	for i := 0; i < len(parts); i++ {
		start := func() error { return l.Start(ctx, parts[i], first) }
		if i+1 < len(parts) && parts[i+1].Beside {
			i++
			start = func() error { return l.startBoth(ctx, parts[i-1], parts[i], first) }
		}
		if err := start(); err != nil {
			return err
		}
	}
	return nil
}

// startBoth starts a part, and one that is beside it.
func (l *List[G]) startBoth(ctx context.Context, p, beside Part[G], first G) error {
	l.mu.Lock()
	l.started = append(l.started, p, beside)
	l.mu.Unlock()
	during, cancel := context.WithCancel(ctx)
	defer cancel()
	var failed error
	var early sync.WaitGroup
	early.Go(func() { failed = beside.Start(during, first) })
	err := p.Start(ctx, first)
	if err != nil {
		cancel()
	}
	early.Wait()
	if err != nil || failed == nil {
		return err
	}
	return beside.Start(ctx, first)
}

// Start starts a part after the earlier ones.
func (l *List[G]) Start(ctx context.Context, p Part[G], first G) error {
	l.mu.Lock()
	l.started = append(l.started, p)
	l.mu.Unlock()
	return p.Start(ctx, first)
}

// Reload prepares all parts, calls swap, which makes next the served generation, and changes the parts. If a part can't
// be prepared, everything is as it was. Call settle once nothing writes with the previous generation, and then retire
// once nothing uses it.
func (l *List[G]) Reload(ctx context.Context, before, next G,
	swap func()) (settle, retire func(context.Context), err error) {
	var prepared []Change
	for _, p := range l.all() {
		if p.Reload == nil {
			continue
		}
		c, err := p.Reload(ctx, before, next)
		if err != nil {
			for i := len(prepared) - 1; i >= 0; i-- {
				if cancel := prepared[i].Cancel; cancel != nil {
					cancel()
				}
			}
			return nil, nil, errs.Wrap(err, errs.KindOf(err), "%s", p.Name)
		}
		prepared = append(prepared, c)
	}
	swap()
	for _, c := range prepared {
		if c.Apply != nil {
			c.Apply()
		}
	}
	each := func(phase func(Change) func(context.Context)) func(context.Context) {
		return func(ctx context.Context) {
			for i := len(prepared) - 1; i >= 0; i-- {
				if end := phase(prepared[i]); end != nil {
					end(ctx)
				}
			}
		}
	}
	return each(func(c Change) func(context.Context) { return c.Settle }),
		each(func(c Change) func(context.Context) { return c.Retire }), nil
}

// Stop stops all parts in the reverse order of starting. A part that does not end before ctx is aborted and logged,
// which is not an error: each acknowledged write is in its record with its event.
func (l *List[G]) Stop(ctx context.Context) error {
	l.mu.Lock()
	started := l.started
	l.started = nil
	l.mu.Unlock()
	var all []error
	for i := len(started) - 1; i >= 0; i-- {
		p := started[i]
		if p.Stop == nil {
			continue
		}
		switch err := p.Stop(ctx); {
		case err == nil:
		case ctx.Err() != nil && errors.Is(err, ctx.Err()):
			l.log.Warn("a part did not end in time, and was aborted; nothing that was acknowledged is lost",
				"part", p.Name, "error", err)
		default:
			all = append(all, errs.Wrap(err, errs.KindOf(err), "stopping %s", p.Name))
		}
	}
	return errors.Join(all...)
}

// Check returns the problems of the parts that an operator should know: first those of the named parts in this order,
// then the others.
func (l *List[G]) Check(first ...string) (all []string) {
	rank := func(p Part[G]) int {
		if i := slices.Index(first, p.Name); i >= 0 {
			return i
		}
		return len(first)
	}
	for _, p := range slices.SortedStableFunc(slices.Values(l.all()),
		func(a, b Part[G]) int { return rank(a) - rank(b) }) {
		if p.Check != nil {
			all = append(all, p.Check()...)
		}
	}
	return all
}

// all returns the parts that were started, in that order.
func (l *List[G]) all() []Part[G] {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.started)
}
