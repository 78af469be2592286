package part

import (
	"context"
	"sync"
	"time"

	"belfry/internal/backoff"
	"belfry/pkg/errs"
)

// Background is the background work of a part, from Go until Stop. The zero value is ready.
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
	b.Repeat(func() time.Duration { return interval }, do)
}

// NowAndEvery calls a function now, and then at an interval, until it returns false. One call follows the other: a slow
// one could replace the result of a later one.
func (b *Background) NowAndEvery(interval time.Duration, do func(ctx context.Context) bool) {
	wait := time.Duration(0)
	b.Repeat(func() time.Duration { return wait }, func(ctx context.Context) bool {
		wait = interval
		return do(ctx)
	})
}

// intervalCheck is the time after which a changed interval takes effect at the latest.
const intervalCheck = time.Minute

// Repeat calls a function at an interval, which may change meanwhile, until it returns false.
func (b *Background) Repeat(interval func() time.Duration, do func(ctx context.Context) bool) {
	b.Go(func(ctx context.Context) {
		for {
			for began := time.Now(); ; {
				left := interval() - time.Since(began)
				if left <= 0 {
					break
				}
				if backoff.Sleep(ctx, min(left, intervalCheck)) != nil {
					return
				}
			}
			if ctx.Err() != nil || !do(ctx) {
				return
			}
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
		return errs.Wrap(ctx.Err(), errs.Canceled, "it has not finished")
	}
}
