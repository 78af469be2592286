package app

import (
	"context"
	"sync/atomic"
)

// lifetime is how a process ends.
type lifetime struct {
	stopping context.Context // ends when the stop begins
	draining context.Context // ends when no more requests are accepted
	cut      context.Context // ends when bodies of requests that have not arrived are given up

	stop, drain, cutOff context.CancelFunc

	failed chan error
	ended  atomic.Pointer[error] // the first of failed
}

func newLifetime() *lifetime {
	l := &lifetime{failed: make(chan error, 1)}
	l.stopping, l.stop = context.WithCancel(context.Background())
	l.draining, l.drain = context.WithCancel(context.Background())
	l.cut, l.cutOff = context.WithCancel(context.Background())
	return l
}

// fail says that belfry can't continue and must be stopped. Only the first error is received, since others follow from it.
func (l *lifetime) fail(err error) {
	l.ended.CompareAndSwap(nil, &err)
	select {
	case l.failed <- err:
	default:
	}
}

// err returns why only a restart of the process helps; nil if it can continue.
func (l *lifetime) err() error {
	if err := l.ended.Load(); err != nil {
		return *err
	}
	return nil
}
