package serving

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

// inRequest is a request's context, as package front makes it.
type inRequest struct {
	context.Context
	use Using
}

// Each request is a use of a generation, which takes no memory besides that of its context.
func TestAUseAllocatesNothing(t *testing.T) {
	s := NewCurrent(&Generation{})
	if n := testing.AllocsPerRun(100, func() {
		r := inRequest{Context: t.Context()}
		s.UseThenRead(&r.use)
		defer r.use.Done()
		r.use.Reads()
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// A request that still reads when it has ended, in a goroutine that it left behind, ends no other use.
func TestAUseEndsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := &Generation{}
		s := NewCurrent(first)
		var ended, lasting Using
		s.UseThenRead(&ended)
		s.UseThenRead(&lasting)
		ended.Done()
		ended.Reads()
		var settled atomic.Bool
		s.Replace(&Generation{})
		s.Retire(first, func(context.Context) { settled.Store(true) }, func(context.Context) {})
		synctest.Wait()
		if settled.Load() {
			t.Error("settled while a request may write")
		}
		lasting.Done()
		synctest.Wait()
		if !settled.Load() {
			t.Error("not settled once both have ended")
		}
	})
}
