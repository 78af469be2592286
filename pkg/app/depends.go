package app

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"belfry/internal/count"
	"belfry/listeners/sweep"
	"belfry/pkg/api/system"
	"belfry/pkg/app/plan"
	"belfry/pkg/errs"
)

const (
	// partTimeout is how long a part has to reply to a check.
	partTimeout = 2 * time.Second

	// answerTime is how long a probe waits for checks: a probe of Kubernetes gives up after a second, whatever
	// the reply would have been.
	answerTime = 700 * time.Millisecond

	// freshTime is for how long the result of a check is used without another check. So probes, which anybody can
	// send, cost at most a check a second.
	freshTime = time.Second

	// hangTime is for how long a check may run while the result of the one before counts: longer than partTimeout,
	// after which a check ends unless it hangs. A result is not too old by itself: who asks twice a minute, and gets
	// the reply of a part that takes a second, would never get another one.
	hangTime = 5 * time.Second
)

// The kinds of parts.
const (
	partBackend   = "backend"
	partBinaries  = "binaries"
	partBus       = "bus"
	partOutbox    = "outbox"
	partListeners = "listeners"
)

// dependency is what a process depends on.
type dependency struct {
	kind, name string
	detail     string // for people: "mongodb"
	failed     string // what an error of the check means; "": it says so itself
	check      func(ctx context.Context) error

	mu      sync.Mutex
	err     error         // of the last check
	took    time.Duration // by that
	at      time.Time     // when that ended; zero: none has
	began   time.Time     // when the check that runs began
	running chan struct{} // closed when that ends; nil: none runs
}

// title is the name of a part for people: "Backend default".
func (p *dependency) title() string {
	return strings.TrimSpace(strings.ToUpper(p.kind[:1]) + p.kind[1:] + " " + p.name)
}

// ask makes a check.
func (p *dependency) ask(ctx context.Context) error {
	err := p.check(ctx)
	if err != nil && p.failed != "" {
		return errs.Wrap(err, errs.Unavailable, "%s", p.failed)
	}
	return err
}

// state returns the result of a check that was made a moment ago, or of one that it makes. If ctx ends before that, the
// last result counts, unless the check hangs. A check that hangs, in a call that no context ends, is the only one.
func (p *dependency) state(ctx context.Context) error {
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
		return errs.New(errs.Unavailable, "%s does not reply", strings.TrimSpace(p.kind+" "+p.name))
	}
	return p.err
}

// lastTook returns how long the last check took.
func (p *dependency) lastTook() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.took
}

// run makes a check whose result all may use, so it does not end with the request that was the first to need it.
func (p *dependency) run(done chan struct{}) {
	ctx, cancel := context.WithTimeout(context.Background(), partTimeout)
	defer cancel()
	err := p.ask(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.err, p.at, p.running = err, time.Now(), nil
	p.took = p.at.Sub(p.began)
	close(done)
}

// newDependencies returns what this process depends on.
func (a *serving) newDependencies() []*dependency {
	var all []*dependency
	for _, name := range slices.Sorted(maps.Keys(a.backends)) {
		all = append(all, &dependency{kind: partBackend, name: name, detail: a.config.Backends[name].Type,
			failed: "backend " + name + " is unavailable", check: a.backends[name].Ping})
	}
	for _, name := range slices.Sorted(maps.Keys(a.storages)) {
		detail := "folder"
		if a.config.Binaries[name].S3 != nil {
			detail = "S3"
		}
		all = append(all, &dependency{kind: partBinaries, name: name, detail: detail,
			failed: "the storage of binaries." + name + " is unavailable", check: a.storages[name].Ping})
	}
	detail := "embedded"
	if len(a.config.Bus.URL) > 0 {
		detail = "external"
	}
	return append(all,
		&dependency{kind: partBus, detail: detail, check: a.bus.Ready},
		&dependency{kind: partOutbox, detail: "to the bus", check: a.outboxWorks},
		&dependency{kind: partListeners, detail: "built in", check: func(context.Context) error { return a.missing.err() }},
	)
}

// outboxWorks returns an error while the bus accepts no events.
func (a *App) outboxWorks(context.Context) error {
	if a.relay.Stats().Unavailable {
		return errs.New(errs.Unavailable, "the bus does not accept events; they stay in their records and will be retried")
	}
	return nil
}

// stuckEvents says that the bus refuses events for good: those that follow are published, so the outbox works.
func (a *App) stuckEvents() []string {
	s := a.relay.Stats()
	if s.Stuck == 0 {
		return nil
	}
	return []string{"the bus refuses " + count.Of(s.Stuck, "event") + " for good, which will not reach any listener before it accepts them; they stay in their records. The latest: " + s.Reason}
}

// states returns the errors of the parts, asking all at once.
func (a *App) states(ctx context.Context) []error {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	all := make([]error, len(a.now().depends))
	var asked sync.WaitGroup
	for i, p := range a.now().depends {
		asked.Go(func() { all[i] = p.state(ctx) })
	}
	asked.Wait()
	return all
}

// ready returns why this process is not ready, or what is degraded although it is.
//
// A front is ready as long as it can read and write objects: taken out of a load balancer for anything else, all
// fronts would be at once, since they share what is unavailable. Nobody sends requests to other processes, so these
// are ready if they can do all of their work.
func (a *App) ready(ctx context.Context) (degraded []string, err error) {
	if a.stopping.Err() != nil {
		return nil, system.ErrStopping
	}
	return a.readyWith(a.states(ctx))
}

// readyWith is ready for the states of the parts.
func (a *App) readyWith(states []error) (degraded []string, err error) {
	served := false
	for i, state := range states {
		p := a.now().depends[i]
		switch {
		case state == nil:
			served = served || a.serves(p)
		case err == nil && a.requires(p):
			err = state
		}
		if state != nil {
			degraded = append(degraded, saysOf(state))
		}
	}
	if err != nil && (!served || !a.has(plan.RoleFront)) {
		return nil, err
	}
	return append(degraded, a.shortcomings()...), nil
}

// shortcomings are what an operator should know about although every part works.
func (a *App) shortcomings() []string {
	return slices.Concat(a.busShortcomings(), a.stuckEvents(), a.missedEvents(), a.failedBackup(), a.incompleteClaims(), a.unsearchable(), a.failingMailer())
}

// serves reports whether a part alone lets a front serve something: a backend of stores that clients may use.
func (a *App) serves(p *dependency) bool {
	if p.kind != partBackend {
		return false
	}
	exposed := false
	for _, s := range a.now().config.Stores {
		if s.Expose != nil && s.Backend == p.name {
			return true
		}
		exposed = exposed || s.Expose != nil
	}
	return !exposed
}

// requires reports whether a process can't be ready without a part; a front can, as long as another one serves.
func (a *App) requires(p *dependency) bool {
	if a.has(plan.RoleFront) {
		return a.serves(p)
	}
	return p.kind != partBinaries || a.has(sweep.Name)
}

// unavailable returns an error if a backend, a storage or the bus is unavailable now.
func (a *App) unavailable(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, partTimeout)
	defer cancel()
	for _, p := range a.now().newDependencies() {
		if err := p.state(ctx); err != nil && p.kind != partListeners {
			return err
		}
	}
	return nil
}

// alive returns why only a restart of this process helps.
func (a *App) alive() error {
	if err := a.ended.Load(); err != nil {
		return *err
	}
	return nil
}

var (
	readyDesc = prometheus.NewDesc("belfry_ready", "1 while /readyz is 200.", nil, nil)
	partDesc  = prometheus.NewDesc("belfry_part_up", "1 while a part that the process depends on works: a backend, a storage of binaries, the bus, the outbox, the built-in listeners.", []string{"kind", "name"}, nil)
)

// collectParts adds the metrics of parts: what probes reply.
func (a *App) collectParts(ctx context.Context, gauge func(*prometheus.Desc, float64, ...string)) {
	states := a.states(ctx)
	for i, state := range states {
		p := a.now().depends[i]
		gauge(partDesc, oneIf(state == nil), p.kind, p.name)
		if p.kind == partBus {
			gauge(busDesc, oneIf(state == nil))
		}
	}
	_, err := a.readyWith(states)
	gauge(readyDesc, oneIf(err == nil && a.stopping.Err() == nil))
}

func oneIf(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
