package importer

import (
	"context"
	"sync"
	"time"
)

// pause is a time until which nobody sends.
type pause struct {
	mu    sync.Mutex
	until time.Time
	clock clock
}

// clock is the time.
type clock interface {
	now() time.Time
	// sleep waits, or returns the error of a context that ends before.
	sleep(ctx context.Context, d time.Duration) error
}

type wallClock struct{}

func (wallClock) now() time.Time { return time.Now() }

func (wallClock) sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// extend makes everybody wait for d from now, if not longer already.
func (p *pause) extend(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if until := p.clock.now().Add(d); until.After(p.until) {
		p.until = until
	}
}

// wait returns when nobody asks for patience any more.
func (p *pause) wait(ctx context.Context) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		p.mu.Lock()
		left := p.until.Sub(p.clock.now())
		p.mu.Unlock()
		if left <= 0 {
			return nil
		}
		if err := p.clock.sleep(ctx, left); err != nil {
			return err
		}
	}
}
