// Package kit is what tests of all packages share: waiting for conditions, free ports, the end of a
// process's output, and processes that end with the test.
package kit

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"
)

// Limit ends what hangs: a request, a process, a wait of a test that expects it to end. It is no measure of how long
// something may take, as a busy machine may take any time for it. The tests of a package have half an hour more.
const Limit = time.Hour

// patience is how long a condition may take to become true, on a processor that does nothing else. It is far longer
// than any takes: a test that reaches it has found a defect.
const patience = time.Minute

// The interval between two checks grows, so that a long wait costs little. It is a multiple of what
// a check takes, so that checks of a busy machine do not keep it busy.
const (
	minInterval = 2 * time.Millisecond
	maxInterval = 50 * time.Millisecond
	perCheck    = 4
)

// WaitFor waits until a condition is true. what names it.
func WaitFor(t testing.TB, what string, condition func() bool) {
	t.Helper()
	if err := Await(patience, func() error {
		if condition() {
			return nil
		}
		return errNotYet
	}); err != nil {
		t.Fatalf("%v: %s", err, what)
	}
}

var errNotYet = errors.New("not yet")

// WaitUntil waits until check returns nil.
func WaitUntil(t testing.TB, check func() error) {
	t.Helper()
	if err := Await(patience, check); err != nil {
		t.Fatal(err)
	}
}

// Await calls check until it returns nil. It gives up after so much time of a processor, or Limit, and returns the last
// error of two or more.
func Await(patience time.Duration, check func() error) error {
	w := newWait(share)
	interval := minInterval
	for checks := 1; ; checks++ {
		checking := time.Now()
		err := check()
		if err == nil {
			return nil
		}
		if w.passed() > patience && checks > 1 || w.took() > Limit {
			return fmt.Errorf("after %s: %w", w.took().Round(time.Millisecond), err)
		}
		<-time.After(max(interval, min(perCheck*time.Since(checking), time.Second)))
		interval = min(interval*3/2, maxInterval)
	}
}

// Patience returns a context that ends after so much time of a processor, or Limit. It is for calls that do not return
// when the test has found a defect; each call of a test that is no such defect returns long before.
func Patience(ctx context.Context, patience time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(ctx, Limit)
	go func() {
		defer cancel()
		tick := time.NewTicker(maxInterval)
		defer tick.Stop()
		for w := newWait(share); w.passed() <= patience; {
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
		}
	}()
	return ctx, cancel
}

// wait counts the time of a processor that a test has waited: of a busy machine only the share that a process gets.
type wait struct {
	share       func() float64
	begin, last time.Time
	before      float64 // the share at last
	counted     time.Duration
}

func newWait(share func() float64) *wait {
	now := time.Now()
	return &wait{share: share, begin: now, last: now, before: share()}
}

// passed returns what has been counted until now. Between two calls the machine counts as busy as it was at the busier
// one.
func (w *wait) passed() time.Duration {
	now, after := time.Now(), w.share()
	w.counted += time.Duration(float64(now.Sub(w.last)) * min(w.before, after))
	w.last, w.before = now, after
	return w.counted
}

func (w *wait) took() time.Duration { return time.Since(w.begin) }
