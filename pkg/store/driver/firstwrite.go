package driver

import (
	"context"
	"sync/atomic"

	"belfry/pkg/errs"
)

// FirstWrite runs a function once, before the first write of a handle. It is safe for concurrent use.
type FirstWrite struct {
	done atomic.Bool
	lock chan struct{}
}

// NewFirstWrite returns a FirstWrite of a handle.
func NewFirstWrite() *FirstWrite { return &FirstWrite{lock: make(chan struct{}, 1)} }

// Do calls do, unless an earlier call of it has returned nil.
func (f *FirstWrite) Do(ctx context.Context, do func() error) error {
	if f.done.Load() {
		return nil
	}
	select {
	case f.lock <- struct{}{}:
	case <-ctx.Done():
		return errs.Wrap(ctx.Err(), errs.Canceled, "the request was canceled")
	}
	defer func() { <-f.lock }()
	if f.done.Load() {
		return nil
	}
	err := do()
	f.done.Store(err == nil)
	return err
}
