package part

import (
	"context"
	"sync"
	"time"

	"belfry/internal/backoff"
	"belfry/pkg/errs"
)

// Background is what a part does beside requests, from Go until Stop. The zero value is ready.
type Background struct {
	mu      sync.Mutex
	ctx     context.Context
	cancel  context.CancelFunc
	running sync.WaitGroup
}

// Go runs a function, whose context ends with Stop.
func (b *Background) Go(do func(ctx context.Context)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ctx == nil {
		b.ctx, b.cancel = context.WithCancel(context.Background())
	}
	ctx := b.ctx
	b.running.Go(func() { do(ctx) })
}

// Every calls a function at an interval until it returns false.
func (b *Background) Every(interval time.Duration, do func(ctx context.Context) bool) {
	b.Go(func(ctx context.Context) {
		for backoff.Sleep(ctx, interval) == nil && do(ctx) {
		}
	})
}

// Stop ends all functions and waits for them, or for the end of ctx.
func (b *Background) Stop(ctx context.Context) error {
	b.mu.Lock()
	if b.cancel != nil {
		b.cancel()
	}
	b.mu.Unlock()
	done := make(chan struct{})
	go func() {
		b.running.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return errs.Wrap(ctx.Err(), errs.Canceled, "it is still at work")
	}
}
