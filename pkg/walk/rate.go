package walk

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"belfry/internal/backoff"
)

// Rate is how many objects a second walks read together. It is safe for concurrent use. A nil Rate has no limit.
type Rate struct {
	objects atomic.Int64

	mu   sync.Mutex
	free time.Time // when the next object may be read
}

// NewRate returns a rate of so many objects a second; 0: no limit.
func NewRate(objects int) *Rate {
	r := &Rate{}
	r.Set(objects)
	return r
}

// Set changes the rate, also of walks in progress.
func (r *Rate) Set(objects int) { r.objects.Store(int64(objects)) }

// minPause is the shortest pause: shorter ones are taken together.
const minPause = 5 * time.Millisecond

// Wait waits until more may be read after so many objects. Time in which nothing was read is not made up for.
func (r *Rate) Wait(ctx context.Context, objects int) error {
	if r == nil {
		return ctx.Err()
	}
	rate := r.objects.Load()
	if rate <= 0 || objects <= 0 {
		return ctx.Err()
	}
	r.mu.Lock()
	now := time.Now()
	if r.free.Before(now) {
		r.free = now
	}
	r.free = r.free.Add(time.Duration(objects) * time.Second / time.Duration(rate))
	pause := r.free.Sub(now)
	r.mu.Unlock()
	if pause >= minPause {
		return backoff.Sleep(ctx, pause)
	}
	return ctx.Err()
}
