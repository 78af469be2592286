// Package backoff spaces out retries: delays that double from a minimum to a
// maximum, with jitter so that many processes do not retry in the same moment.
//
//	retry := backoff.New(100*time.Millisecond, 5*time.Second)
//	for {
//		err := act()
//		if err == nil || !transient(err) {
//			return err
//		}
//		if retry.Wait(ctx) != nil {
//			return err // ctx ended; err says more than ctx.Err()
//		}
//	}
//
// The loop stays with the caller, because callers differ in what they do around
// it: they select on a wake-up besides the delay, start over after a long
// success, or return the last error rather than the context's. That is also why
// this is not github.com/cenkalti/backoff: its Retry waits only for the context
// and returns the context's error, and it has no delay for a given attempt,
// which is what consumers' redelivery and clients' reconnect callbacks ask for.
package backoff

import (
	"context"
	"math/rand/v2"
	"time"
)

// Backoff is the delays of one retry loop. It is not safe for concurrent use.
type Backoff struct {
	min, max time.Duration
	attempt  int
}

// New returns the delays from minimum to maximum.
func New(minimum, maximum time.Duration) *Backoff {
	return &Backoff{min: minimum, max: maximum}
}

// Next returns the delay after one more failed attempt, for loops that select
// on more than the delay.
func (b *Backoff) Next() time.Duration {
	b.attempt++
	return Delay(b.attempt, b.min, b.max)
}

// Wait waits for the next delay. It returns ctx.Err() when ctx ends first.
func (b *Backoff) Wait(ctx context.Context) error { return Sleep(ctx, b.Next()) }

// Reset starts over with the minimum.
func (b *Backoff) Reset() { b.attempt = 0 }

// Failed reports how many delays have been handed out since New or Reset.
func (b *Backoff) Failed() int { return b.attempt }

// Delay returns the delay after a failed attempt, counted from 1: the minimum
// doubled with each attempt up to the maximum, of which a random part up to
// half is taken off.
func Delay(attempt int, minimum, maximum time.Duration) time.Duration {
	d := maximum
	// A shift that overflows cannot be undone.
	if n := max(attempt, 1) - 1; n < 63 && minimum<<n>>n == minimum {
		d = min(minimum<<n, maximum)
	}
	if d <= 0 {
		return 0
	}
	return d - rand.N(d/2+1) //nolint:gosec // jitter, not a secret
}

// Sleep waits for d. It returns ctx.Err() when ctx ends first.
func Sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
