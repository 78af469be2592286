package serving

import (
	"context"
	"errors"
	"testing"

	"belfry/pkg/errs"
)

// What a reload replaces stays complete for those who use it, and a stop waits for them.
func TestAReloadRetiresWhatNobodyUses(t *testing.T) {
	first, next := &Generation{}, &Generation{}
	s := NewCurrent(first)
	used, done := s.Use()
	if s.Replace(next); used != first || s.Now() != next {
		t.Fatal("another configuration is served")
	}
	ended := make(chan struct{})
	s.Retire(first, func(context.Context) { close(ended) })
	stopping, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Retired(stopping); !errors.Is(err, errs.Canceled) {
		t.Errorf("a stop does not wait for it: %v", err)
	}
	select {
	case <-ended:
		t.Fatal("it was retired while it was in use")
	default:
	}
	done()
	<-ended
	if err := s.Retired(t.Context()); err != nil {
		t.Error(err)
	}
}
