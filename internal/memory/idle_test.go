package memory

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

func TestMemoryIsReturnedOnceAProcessRests(t *testing.T) {
	var r resting
	total, poll := uint64(0), 0
	returned := func(allocated ...uint64) (at int) { // -1: at none of the polls
		for i, n := range allocated {
			total += n
			poll++
			if r.poll(total) {
				return i
			}
		}
		return -1
	}
	rest := make([]uint64, restPause)
	for _, c := range []struct {
		says      string
		allocated []uint64 // in each poll
		want      int
	}{
		{"the start, then rest", []uint64{20 * mib, 0, mib / 4}, 2},
		{"load and rest follow, and it was just returned", []uint64{30 * mib, 0, 0, 0, 0}, -1},
		{"so that it has to rest for longer", rest, restPause - 6},
		{"little was allocated", append(rest, mib/2, mib/2, mib/2, 0, 0), -1},
		{"what is allocated at rest adds up", []uint64{mib / 2, mib / 2}, 0},
		{"it is busy", slices.Repeat([]uint64{2 * mib}, 2*restPause), -1},
		{"it rests again", []uint64{0, 0}, 1},
	} {
		if got := returned(c.allocated...); got != c.want {
			t.Errorf("%s: at poll %d, want %d", c.says, got, c.want)
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
