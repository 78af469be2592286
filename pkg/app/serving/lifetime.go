package serving

import (
	"context"
	"sync/atomic"
)

// Lifetime is how a process ends.
type Lifetime struct {
	Stopping context.Context // ends when the stop begins
	Draining context.Context // ends when no more requests are accepted
	Cut      context.Context // ends when bodies of requests that have not arrived are given up

	Stop, Drain, CutOff context.CancelFunc

	Failed chan error
	ended  atomic.Pointer[error] // the first of failed
}

func NewLifetime() *Lifetime {
	l := &Lifetime{Failed: make(chan error, 1)}
	l.Stopping, l.Stop = context.WithCancel(context.Background())
	l.Draining, l.Drain = context.WithCancel(context.Background())
	l.Cut, l.CutOff = context.WithCancel(context.Background())
	return l
}

// fail says that belfry can't continue and must be stopped. Only the first error is received, since others follow from it.
func (l *Lifetime) Fail(err error) {
	l.ended.CompareAndSwap(nil, &err)
	select {
	case l.Failed <- err:
	default:
	}
}

// err returns why only a restart of the process helps; nil if it can continue.
func (l *Lifetime) Err() error {
	if err := l.ended.Load(); err != nil {
		return *err
	}
	return nil
}
