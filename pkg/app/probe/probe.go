// Package probe checks whether the dependencies of a process work: backends, storages, the bus. Any client can send
// probes, so probes share the result of a check, and never wait for a check that hangs.
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

	// answerTime is how long a probe waits for checks: Kubernetes counts a probe as failed after a second without a
	// reply.
	answerTime = 700 * time.Millisecond

	// freshTime is how long the result of a check is used without another check. So the probes of any number of clients
	// cost at most one check a second.
	freshTime = time.Second

	// hangTime is how long a check may run while the previous result counts. It is longer than Timeout, after which a
	// check ends unless it hangs. Results do not expire by age: a client that probes twice a minute would otherwise
	// never get the result of a check that takes a second.
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

// Dependency is a part that a process depends on.
type Dependency struct {
	Kind, Name string
	Detail     string // for people: "mongodb"
	Failed     string // the meaning of the check's error; "": the error has it
	Check      func(ctx context.Context) error

	mu      sync.Mutex
	err     error         // of the last check
	took    time.Duration // by the last check
	at      time.Time     // when the last check ended; zero: none has ended
	began   time.Time     // when the running check began
	running chan struct{} // closed when the running check ends; nil: none runs
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

// State returns the result of a recent check, or of a new one. If ctx ends before the check, the last result counts,
// unless the check hangs. No other check begins while one hangs in a call that ignores its context.
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
		go p.run(running) //nolint:gosec // the check is for all callers, and outlives the first one
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

// run makes a check whose result all callers use, so it does not end with the first request that needs it.
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

// State is the result of a dependency's check.
type State struct {
	Of  *Dependency
	Err error // nil: it works
}

// Ask checks all dependencies concurrently.
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

// Says returns an error's message for an admin, without the text of servers, which can have addresses with passwords.
func Says(err error) string {
	var own *errs.Error
	if errors.As(err, &own) {
		return own.Message
	}
	return "it does not reply; the log has the reason"
}
