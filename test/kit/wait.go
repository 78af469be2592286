// Package kit is what tests of all packages share: waiting for conditions, free ports, the end of a
// process's output, and processes that end with the test.
package kit

import (
	"errors"
	"testing"
	"time"
)

// Limit ends what hangs: a request, a process, a wait of a test that expects it to end. It is no measure of how long
// something may take, as a busy machine may take any time for it.
const Limit = time.Hour

// patience is how long a condition may take to become true, on a processor that does nothing else. It is far longer than
// any takes: a test that reaches it has found a defect.
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

// Await calls check until it returns nil. It returns the last error when so much time has passed, of which only that share
// counts that a process gets of a busy machine, or Limit.
func Await(patience time.Duration, check func() error) error {
	interval := minInterval
	begin := time.Now()
	var counted time.Duration
	for last := begin; ; {
		checking := time.Now()
		err := check()
		if err == nil {
			return nil
		}
		now := time.Now()
		counted += time.Duration(float64(now.Sub(last)) * share())
		last = now
		if counted > patience || now.Sub(begin) > Limit {
			return &lateError{now.Sub(begin), err}
		}
		<-time.After(max(interval, min(perCheck*now.Sub(checking), time.Second)))
		interval = min(interval*3/2, maxInterval)
	}
}

// lateError is the last error of a check that was waited for in vain.
type lateError struct {
	took time.Duration
	err  error
}

func (e *lateError) Error() string {
	return "after " + e.took.Round(time.Millisecond).String() + ": " + e.err.Error()
}
func (e *lateError) Unwrap() error { return e.err }
