package memory

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestMemoryIsReturnedOnceAProcessRests(t *testing.T) {
	var r resting
	total := uint64(0)
	for i, c := range []struct {
		allocated uint64 // since the last poll
		want      bool
	}{
		{20 * mib, false}, {0, false}, {mib / 2, true}, // the start, then rest
		{0, false}, {mib, false}, {0, false}, // little is not worth it
		{30 * mib, false}, {2 * mib, false}, {0, false}, {0, true},
		{2 * mib, false}, {2 * mib, false}, {2 * mib, false}, {2 * mib, false}, {2 * mib, false}, // it is busy
		{mib, false}, {mib, true}, {mib / 2, false}, {mib, false}, {mib / 2, true},
	} {
		total += c.allocated
		if got := r.poll(total); got != c.want {
			t.Errorf("poll %d, %d bytes: %t", i, total, got)
		}
	}
}

func TestReturnWhenIdleEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		unmapped, ended := 0, make(chan struct{})
		go func() {
			ReturnWhenIdle(ctx, func() { unmapped++ })
			close(ended)
		}()
		garbage = make([]byte, 2*restReturned)
		for range restPolls + 2 {
			<-time.After(restPoll)
		}
		cancel()
		<-ended
		if unmapped != 1 {
			t.Errorf("memory was returned %d times", unmapped)
		}
	})
}

var garbage []byte
