// Package probe asks whether what a process depends on works: backends, storages, the bus. Probes, which anybody can send, share the
// result of a check, and none waits for one that hangs.
package probe

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"belfry/pkg/errs"
)

const (
	// Timeout is how long a part has to reply to a check.
	Timeout = 2 * time.Second

	// answerTime is how long a probe waits for checks: a probe of Kubernetes gives up after a second, whatever
	// the reply would have been.
	answerTime = 700 * time.Millisecond

	// freshTime is for how long the result of a check is used without another check. So probes, which anybody can
	// send, cost at most a check a second.
	freshTime = time.Second

	// hangTime is for how long a check may run while the result of the one before counts: longer than Timeout,
	// after which a check ends unless it hangs. A result is not too old by itself: who asks twice a minute, and gets
	// the reply of a part that takes a second, would never get another one.
	hangTime = 5 * time.Second
)

// The kinds of parts.
const (
	Backend   = "backend"
	Binaries  = "binaries"
	Bus       = "bus"
	Outbox    = "outbox"
	Listeners = "listeners"
)

// Dependency is what a process depends on.
type Dependency struct {
	Kind, Name string
	Detail     string // for people: "mongodb"
	Failed     string // what an error of the check means; "": it says so itself
	Check      func(ctx context.Context) error

	mu      sync.Mutex
	err     error         // of the last check
	took    time.Duration // by that
	at      time.Time     // when that ended; zero: none has
	began   time.Time     // when the check that runs began
	running chan struct{} // closed when that ends; nil: none runs
}

// Title is the name of a part for people: "Backend default".
func (p *Dependency) Title() string {
	return strings.TrimSpace(strings.ToUpper(p.Kind[:1]) + p.Kind[1:] + " " + p.Name)
}

// ask makes a check.
func (p *Dependency) ask(ctx context.Context) error {
	err := p.Check(ctx)
	if err != nil && p.Failed != "" {
		return errs.Wrap(err, errs.Unavailable, "%s", p.Failed)
	}
	return err
}

// State returns the result of a check that was made a moment ago, or of one that it makes. If ctx ends before that, the
// last result counts, unless the check hangs. A check that hangs, in a call that no context ends, is the only one.
func (p *Dependency) State(ctx context.Context) error {
	p.mu.Lock()
	if !p.at.IsZero() && time.Since(p.at) < freshTime {
		defer p.mu.Unlock()
		return p.err
	}
	running := p.running
	if running == nil {
		running = make(chan struct{})
		p.running, p.began = running, time.Now()
		go p.run(running) //nolint:gosec // the check is for all who ask, and outlives who asked first
	}
	p.mu.Unlock()
	select {
	case <-running:
	case <-ctx.Done():
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.at.IsZero() || p.running != nil && time.Since(p.began) > hangTime {
		return errs.New(errs.Unavailable, "%s does not reply", strings.TrimSpace(p.Kind+" "+p.Name))
	}
	return p.err
}

// LastTook returns how long the last check took.
func (p *Dependency) LastTook() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.took
}

// run makes a check whose result all may use, so it does not end with the request that was the first to need it.
func (p *Dependency) run(done chan struct{}) {
	ctx, cancel := context.WithTimeout(context.Background(), Timeout)
	defer cancel()
	err := p.ask(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.err, p.at, p.running = err, time.Now(), nil
	p.took = p.at.Sub(p.began)
	close(done)
}

// State is what a dependency has replied.
type State struct {
	Of  *Dependency
	Err error // nil: it works
}

// Ask asks all dependencies at once.
func Ask(ctx context.Context, all []*Dependency) []State {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	states := make([]State, len(all))
	var asked sync.WaitGroup
	for i, p := range all {
		asked.Go(func() { states[i] = State{p, p.State(ctx)} })
	}
	asked.Wait()
	return states
}

// Says returns what an error says to an admin: its message, without the text of servers, which can have addresses
// with passwords.
func Says(err error) string {
	var own *errs.Error
	if errors.As(err, &own) {
		return own.Message
	}
	return "it does not reply; the log has the reason"
}
