// Package wait waits in tests for what is to come about.
package wait

import (
	"testing"
	"time"
)

const (
	patience = 30 * time.Second
	step     = 5 * time.Millisecond
)

// For waits until something is so.
func For(t testing.TB, what string, right func() bool) {
	t.Helper()
	if !poll(right) {
		t.Fatalf("not so after %s: %s", patience, what)
	}
}

// Until waits until there is no error.
func Until(t testing.TB, right func() error) {
	t.Helper()
	var err error
	if !poll(func() bool { err = right(); return err == nil }) {
		t.Fatalf("still after %s: %v", patience, err)
	}
}

func poll(right func() bool) bool {
	tick := time.NewTicker(step)
	defer tick.Stop()
	for end := time.After(patience); !right(); {
		select {
		case <-tick.C:
		case <-end:
			return false
		}
	}
	return true
}
