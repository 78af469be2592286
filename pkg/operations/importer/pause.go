package importer

import (
	"context"
	"sync"
	"time"

	"belfry/internal/backoff"
)

// pause is a time before which no worker sends requests.
type pause struct {
	mu    sync.Mutex
	until time.Time
	clock clock
}

// clock is the source of time.
type clock interface {
	now() time.Time
	// sleep waits for d, or returns the error of ctx when it ends first.
	sleep(ctx context.Context, d time.Duration) error
}

type wallClock struct{}

func (wallClock) now() time.Time { return time.Now() }

func (wallClock) sleep(ctx context.Context, d time.Duration) error { return backoff.Sleep(ctx, d) }

// extend makes all workers wait for at least d from now.
func (p *pause) extend(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if until := p.clock.now().Add(d); until.After(p.until) {
		p.until = until
	}
}

// wait waits for the end of the pause.
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
