package memory

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// When a process rests, and when it returns memory then.
const (
	restPoll     = time.Second / 2
	restPolls    = 2       // in which it allocated little
	restBytes    = mib / 2 // that is little, of one poll
	restReturned = 2 * mib // that were allocated since memory was returned: less is not worth a collection
	restPause    = 10 * 2  // polls between two returns: a load that comes and goes needs its memory again
)

// ReturnWhenIdle returns memory to the system whenever the process rests: after a load the runtime would hold it for
// the next one. unmap does so with the pages of the program. It ends with the context.
func ReturnWhenIdle(ctx context.Context, unmap func()) {
	polls := time.NewTicker(restPoll)
	defer polls.Stop()
	var r resting
	for {
		select {
		case <-ctx.Done():
			return
		case <-polls.C:
		}
		if r.poll(allocated()) {
			debug.FreeOSMemory()
			unmap()
		}
	}
}

// resting says when a process rests.
type resting struct {
	last, returned uint64 // bytes allocated until the last poll, and until memory was returned
	quiet          int    // polls
	pause          int    // polls until memory may be returned again
}

// poll reports whether memory is to be returned, once so many bytes were allocated.
func (r *resting) poll(allocated uint64) bool {
	r.quiet++
	if allocated-r.last > restBytes {
		r.quiet = 0
	}
	r.last = allocated
	r.pause = max(0, r.pause-1)
	if r.quiet < restPolls || r.pause > 0 || allocated-r.returned < restReturned {
		return false
	}
	r.returned, r.pause = allocated, restPause
	return true
}

// allocated returns how many bytes were allocated since the start.
func allocated() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
