package serving

import (
	"context"
	"sync/atomic"
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
