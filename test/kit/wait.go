// Package kit is what tests of all packages share: waiting for conditions, free ports, the end of a
// process's output, and processes that end with the test.
package kit

import (
	"errors"
	"testing"
	"time"
)

const (
	patience = 30 * time.Second
	step     = 5 * time.Millisecond
)

// WaitFor waits until something is so.
func WaitFor(t testing.TB, what string, right func() bool) {
	t.Helper()
	if Await(patience, func() error {
		if right() {
			return nil
		}
		return errNotYet
	}) != nil {
		t.Fatalf("not so after %s: %s", patience, what)
	}
}

var errNotYet = errors.New("not yet")

// WaitUntil waits until there is no error.
func WaitUntil(t testing.TB, right func() error) {
	t.Helper()
	if err := Await(patience, right); err != nil {
		t.Fatalf("still after %s: %v", patience, err)
	}
}

// Await asks until there is no error, and returns the last one after so long.
func Await(patience time.Duration, right func() error) error {
	for deadline := time.Now().Add(patience); ; {
		err := right()
		if err == nil || time.Now().After(deadline) {
			return err
		}
		<-time.After(step)
	}
}
