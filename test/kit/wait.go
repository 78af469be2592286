// Package kit is what tests of all packages share: waiting for conditions, free ports, the end of a
// process's output, and processes that end with the test.
package kit

import (
	"errors"
	"testing"
	"time"
)

// timeout is far longer than any condition takes to become true, on a busy machine too: a test that
// reaches it has found a defect.
const timeout = time.Minute

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
	if Await(timeout, func() error {
		if condition() {
			return nil
		}
		return errNotYet
	}) != nil {
		t.Fatalf("not true after %s: %s", timeout, what)
	}
}

var errNotYet = errors.New("not yet")

// WaitUntil waits until check returns nil.
func WaitUntil(t testing.TB, check func() error) {
	t.Helper()
	if err := Await(timeout, check); err != nil {
		t.Fatalf("after %s: %v", timeout, err)
	}
}

// Await calls check until it returns nil, and returns its last error after the timeout.
func Await(timeout time.Duration, check func() error) error {
	interval := minInterval
	for deadline := time.Now().Add(timeout); ; {
		begin := time.Now()
		err := check()
		if err == nil || time.Now().After(deadline) {
			return err
		}
		<-time.After(max(interval, min(perCheck*time.Since(begin), time.Second)))
		interval = min(interval*3/2, maxInterval)
	}
}
