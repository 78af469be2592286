package serving

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"

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

// What is begun when a configuration is retired may count on none before it being in use.
func TestReloadsRetireInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, second := &Generation{}, &Generation{}
		s := NewCurrent(first)
		_, done := s.Use()
		var ended []string
		s.Replace(second)
		s.Retire(first, func(context.Context) { ended = append(ended, "first") })
		s.Replace(&Generation{})
		s.Retire(second, func(context.Context) { ended = append(ended, "second") })
		synctest.Wait()
		if len(ended) > 0 {
			t.Errorf("%q were retired while the first is in use", ended)
		}
		done()
		synctest.Wait()
		if !slices.Equal(ended, []string{"first", "second"}) {
			t.Errorf("retired are %q", ended)
		}
	})
}
