package mapping

import (
	"context"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"belfry/pkg/store"
)

const (
	largeTarget       = 64 << 10  // bytes from which on a target is large
	minPace           = 1 << 20   // bytes of large targets in rounds, at least
	bytesPerProcessor = 512 << 10 // and for each processor: on two processors one target of 1 MiB at a time
	maxLarge          = 10_000    // large targets that a Pace remembers
)

// A pause after a round that took longer than minPause is as long as the round was, and at most maxPause.
const (
	minPause = time.Millisecond
	maxPause = 50 * time.Millisecond
)

// pauseAfter returns how long to wait after a round: as long as it took, so that half of the time is left to everything
// else.
func pauseAfter(took time.Duration) time.Duration {
	if took <= minPause {
		return 0
	}
	return min(took, maxPause)
}

// A Pace limits the resources of a process that rounds on large targets use together. Each round reads, computes and
// writes the whole target. Without a limit, the memory of many large targets adds up, and their processor time and
// writes starve requests.
//
// So the Pace limits the bytes of the targets whose rounds run or pause after they ended; other large targets wait
// for their turn. Targets below the threshold are not counted and do not wait.
//
// It decides when a round begins and nothing else, so convergence does not depend on it.
type Pace struct {
	bytes int64
	free  *semaphore.Weighted // first come, first served

	mu    sync.Mutex
	large map[targetID]int // bytes of the large targets, as they were last read
}

// targetID identifies a target.
type targetID struct{ store, uuid string }

// NewPace returns a pace for large targets of so many bytes together, one at least; 0: as many as this machine should
// have.
func NewPace(bytes int) *Pace {
	if bytes == 0 {
		bytes = max(minPace, runtime.GOMAXPROCS(0)*bytesPerProcessor)
	}
	return &Pace{bytes: int64(bytes), free: semaphore.NewWeighted(int64(bytes)), large: map[targetID]int{}}
}

// known returns how large a target was when it was last read; 0 if it was not large.
func (p *Pace) known(id targetID) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.large[id]
}

// read records the size of a target.
func (p *Pace) read(id targetID, bytes int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if bytes < largeTarget {
		delete(p.large, id)
		return
	}
	if len(p.large) >= maxLarge {
		clear(p.large) // they are read again
	}
	p.large[id] = bytes
}

// A Turn is the right to run a round on a target now.
type Turn struct {
	r      *Reconciler
	m      *store.Mapping
	target string

	pace  *Pace         // nil: none
	held  int64         // bytes of the pace
	least time.Duration // of the pause
	began time.Time
}

// Begin waits until a round on a target may begin: at once, unless the target is known to be large. Callers collect
// further sources for the target while they wait, and reconcile them all in one round. The turn must be ended.
func (r *Reconciler) Begin(ctx context.Context, m *store.Mapping, target string) (*Turn, error) {
	t := &Turn{r: r, m: m, target: target, pace: r.pace, began: time.Now()}
	if t.pace == nil || m.Array == "" {
		return t, nil
	}
	if bytes := t.pace.known(targetID{m.Target, target}); bytes > 0 {
		return t, t.acquire(ctx, bytes)
	}
	return t, nil
}

// acquire waits until the pace has capacity for a target of so many bytes.
func (t *Turn) acquire(ctx context.Context, bytes int) error {
	held := min(int64(bytes), t.pace.bytes)
	if err := t.pace.free.Acquire(ctx, held); err != nil {
		return err
	}
	t.held, t.began = held, time.Now()
	return nil
}

// admit is called with the size of the target once it is read. It reports whether it has waited: the target is then to
// be read again, as it was not kept in memory.
func (t *Turn) admit(ctx context.Context, bytes int) (waited bool, err error) {
	if t.pace == nil {
		return false, nil
	}
	t.pace.read(targetID{t.m.Target, t.target}, bytes)
	if bytes < largeTarget || t.held > 0 {
		return false, nil
	}
	return true, t.acquire(ctx, bytes)
}

// chunkBytes is about how many bytes a round reads and writes for an entry of a large array.
const chunkBytes = 8 << 10

// admitPart is admit for a round that handles some entries of a large array. The more of the array the round writes,
// the longer is the pause after it: so that the next one applies more events by writing little more.
func (t *Turn) admitPart(ctx context.Context, array, entries int) (waited bool, err error) {
	bytes := min(array, entries*chunkBytes)
	if bytes >= largeTarget {
		t.least = maxPause * time.Duration(bytes) / time.Duration(array)
	}
	return t.admit(ctx, bytes)
}

// Reconcile is Reconciler.Reconcile within the turn.
//
// With fence, no round that has read the target before can write to it once this one returns: an older entry of these
// sources does not come back, not even for a moment. So it writes the target even if that changes nothing but the
// revision. A request that waits for the entries of its write needs it.
//
// If another process has written the target during a round, the round is repeated, unless onConflict returns an error.
// Then that error is returned, and the entries of the sources may not have been written. onConflict may be nil.
func (t *Turn) Reconcile(ctx context.Context, sources []string, fence bool, onConflict func() error) error {
	return t.r.reconcile(ctx, t, sources, fence, onConflict)
}

// End ends the turn, and returns the length of the pause that follows: 0 unless the target is large. It does not
// wait for the pause.
func (t *Turn) End() time.Duration {
	held := t.held
	if held == 0 {
		return 0
	}
	t.held = 0
	pause := max(pauseAfter(time.Since(t.began)), t.least)
	time.AfterFunc(pause, func() { t.pace.free.Release(held) })
	return pause
}
