package serving

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
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
	s.Retire(first, func(context.Context) {}, func(context.Context) { close(ended) })
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

// What is begun when a configuration is settled or retired may count on none before it being written with, or in use.
func TestReloadsSettleAndRetireInOrder(t *testing.T) {
	for name, c := range map[string]struct {
		use     func(s *Current) (g *Generation, done func())
		settled []string // while the first is in use
	}{
		"writer": {(*Current).Use, nil},
		"reader": {(*Current).Read, []string{"first", "second"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				first, second := &Generation{}, &Generation{}
				s := NewCurrent(first)
				_, done := c.use(s)
				var settled, ended []string
				s.Replace(second)
				s.Retire(first, func(context.Context) { settled = append(settled, "first") },
					func(context.Context) { ended = append(ended, "first") })
				s.Replace(&Generation{})
				s.Retire(second, func(context.Context) { settled = append(settled, "second") },
					func(context.Context) { ended = append(ended, "second") })
				synctest.Wait()
				if !slices.Equal(settled, c.settled) || len(ended) > 0 {
					t.Errorf("%q were settled and %q retired while the first is in use", settled, ended)
				}
				done()
				synctest.Wait()
				if want := []string{"first", "second"}; !slices.Equal(settled, want) || !slices.Equal(ended, want) {
					t.Errorf("settled are %q, retired %q", settled, ended)
				}
			})
		})
	}
}

// A reload fills and builds beside work that only reads, but not beside what may write with the configuration before.
func TestAReloadSettlesBesideReaders(t *testing.T) {
	for name, c := range map[string]struct {
		use     func(s *Current) (done func())
		settles bool
	}{
		"a writer": {func(s *Current) func() { _, done := s.Use(); return done }, false},
		"a reader": {func(s *Current) func() { _, done := s.Read(); return done }, true},
		"a request": {func(s *Current) func() {
			var u Using
			s.UseThenRead(&u)
			return u.Done
		}, false},
		"a request that reads": {func(s *Current) func() {
			var u Using
			s.UseThenRead(&u)
			u.Reads()
			u.Reads()
			return u.Done
		}, true},
		"both": {func(s *Current) func() { _, read := s.Read(); _, use := s.Use(); return func() { read(); use() } },
			false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				first := &Generation{}
				s := NewCurrent(first)
				done := c.use(s)
				s.Replace(&Generation{})
				var settled, retired atomic.Bool
				s.Retire(first, func(context.Context) { settled.Store(true) },
					func(context.Context) { retired.Store(true) })
				synctest.Wait()
				if settled.Load() != c.settles || retired.Load() {
					t.Errorf("settled: %v, retired: %v", settled.Load(), retired.Load())
				}
				done()
				synctest.Wait()
				if !settled.Load() || !retired.Load() {
					t.Errorf("at last settled: %v, retired: %v", settled.Load(), retired.Load())
				}
			})
		})
	}
}
