package probe

import (
	"context"
	"sync/atomic"
	"testing"
	"time"
)

// Probes that come at once make one check, and a check that hangs delays none of them for longer than their clients
// wait.
func TestProbesShareAChecksResult(t *testing.T) {
	var checks atomic.Int32
	begun, release := make(chan struct{}, 100), make(chan struct{})
	part := &Dependency{Kind: Backend, Name: "b", Failed: "backend b is unavailable",
		Check: func(context.Context) error {
			checks.Add(1)
			begun <- struct{}{}
			<-release
			return nil
		}}
	ended, cancel := context.WithCancel(t.Context())
	cancel() // the time for a reply is over
	for range 20 {
		if err := part.State(ended); err == nil || err.Error() != "backend b does not reply" {
			t.Fatalf("without a result: %v", err)
		}
	}
	<-begun
	close(release)
	if err := part.State(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := checks.Load(); n != 1 {
		t.Errorf("%d checks for probes that came at once", n)
	}
	part.at = part.at.Add(-freshTime)
	hangs := make(chan struct{})
	defer close(hangs)
	part.Check = func(context.Context) error { <-hangs; return nil }
	if err := part.State(ended); err != nil {
		t.Errorf("while a check hangs, right after one that succeeded: %v", err)
	}
	part.mu.Lock()
	part.at = part.at.Add(-time.Hour)
	part.mu.Unlock()
	if err := part.State(ended); err != nil {
		t.Errorf("nobody asked for an hour, and the check has just begun: %v", err)
	}
	part.mu.Lock()
	part.began = part.began.Add(-hangTime)
	part.mu.Unlock()
	if err := part.State(ended); err == nil {
		t.Error("the check hangs, and the result of before counts")
	}
}
