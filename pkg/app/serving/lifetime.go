package serving

import (
	"context"
	"slices"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"belfry/pkg/app/plan"
	"belfry/pkg/errs"
)

// Lifetime has the contexts that end with a process.
type Lifetime struct {
	Stopping context.Context // ends when the stop begins
	Draining context.Context // ends when no more requests are accepted
	Cut      context.Context // ends when the process no longer waits for bodies of requests

	Stop, Drain, CutOff context.CancelFunc // end these contexts

	Failed chan error            // receives the first error of Fail
	ended  atomic.Pointer[error] // that error
}

// NewLifetime returns the lifetime of a process that starts.
func NewLifetime() *Lifetime {
	l := &Lifetime{Failed: make(chan error, 1)}
	l.Stopping, l.Stop = context.WithCancel(context.Background())  //nolint:gosec // a stop of the process calls all three
	l.Draining, l.Drain = context.WithCancel(context.Background()) //nolint:gosec // as above
	l.Cut, l.CutOff = context.WithCancel(context.Background())     //nolint:gosec // as above
	return l
}

// Fail reports that belfry can't continue and must be stopped. Only the first error is received, since others follow
// from it.
func (l *Lifetime) Fail(err error) {
	l.ended.CompareAndSwap(nil, &err)
	select {
	case l.Failed <- err:
	default:
	}
}

// Err returns the reason why only a restart of the process helps; nil if it can continue.
func (l *Lifetime) Err() error {
	if err := l.ended.Load(); err != nil {
		return *err
	}
	return nil
}

// Metrics are the metrics of a process. Each part registers its own.
type Metrics struct {
	Registry *prometheus.Registry // of counters
	// of values that are computed at each scrape, perhaps by requests to backends and the bus
	Asked *prometheus.Registry
}

// NewMetrics returns empty metrics.
func NewMetrics() *Metrics {
	return &Metrics{Registry: prometheus.NewRegistry(), Asked: prometheus.NewRegistry()}
}

// All gathers all metrics.
func (m *Metrics) All() prometheus.Gatherer { return prometheus.Gatherers{m.Registry, m.Asked} }

// Roles are the roles of a process; none: all.
type Roles []string

// Has reports whether a process has a role.
func (r Roles) Has(role string) bool { return len(r) == 0 || slices.Contains(r, role) }

// Names returns the names of all roles that a process has.
func (r Roles) Names() []string {
	if len(r) == 0 {
		return plan.Roles()
	}
	return r
}

// Startup is the reason why a process does not serve yet. The zero value means that it is starting.
type Startup struct{ waits atomic.Pointer[errs.Error] }

// Wait records the cause of a wait.
func (s *Startup) Wait(what string) {
	s.waits.Store(errs.New(errs.Unavailable, "belfry is starting and waits for %s", what))
}

// Resume records the end of the wait.
func (s *Startup) Resume() { s.waits.Store(nil) }

// Err returns the reason why the process does not serve yet.
func (s *Startup) Err() error {
	if err := s.waits.Load(); err != nil {
		return err
	}
	return errs.New(errs.Unavailable, "belfry is starting")
}
