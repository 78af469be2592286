package memory

import (
	"runtime"
	"testing"

	"belfry/test/kit"
)

func TestTheLimitIsTheBudgetOrWhatIsLiveAndSomeRoom(t *testing.T) {
	b := Budget{Heap: 176 * mib, Most: 460 * mib, Room: 35 * mib}
	for _, c := range []struct {
		says string
		of   usage
		want uint64
	}{
		{"little is live", usage{live: 20 * mib, scanned: 10 * mib, other: 15 * mib}, 176},
		{"much is live, and little of it is scanned", usage{live: 160 * mib, scanned: 10 * mib, other: 15 * mib}, 210},
		{"much is scanned", usage{live: 160 * mib, scanned: 60 * mib, other: 20 * mib}, 300},
		{"more than the process may use", usage{live: 440 * mib, scanned: 400 * mib, other: 20 * mib}, 460},
		{"all of it is live", usage{live: 600 * mib, scanned: 600 * mib, other: 20 * mib}, 460},
	} {
		if got := b.limit(c.of) / mib; got != c.want {
			t.Errorf("%s: %d MiB, want %d", c.says, got, c.want)
		}
	}
}

func TestTheUsageAddsUp(t *testing.T) {
	runtime.GC()
	u := readUsage()
	if u.live == 0 || u.other == 0 || u.live > 1<<40 || u.other > 1<<40 || u.free > 1<<40 {
		t.Errorf("%+v", u)
	}
}

func TestTheRoomOfACommandIsBounded(t *testing.T) {
	for live, want := range map[uint64]int{
		0: 100, commandRoom / 2: 100, commandRoom: 100, // as by default
		2 * commandRoom:  50,
		10 * commandRoom: 25, // or else it would collect all the time
	} {
		if got := commandPercent(live); got != want {
			t.Errorf("%d live bytes: %d %%, want %d", live, got, want)
		}
	}
}

func TestAfterCollectionIsCalledForEachCollection(t *testing.T) {
	calls := make(chan struct{}, 100)
	afterCollection(func() {
		select {
		case calls <- struct{}{}:
		default:
		}
	})
	for range 3 {
		kit.WaitFor(t, "it is called after a collection", func() bool {
			runtime.GC()
			select {
			case <-calls:
				return true
			default:
				return false
			}
		})
	}
}
