package main

import (
	"runtime"
	"testing"

	"belfry/test/kit"
)

func TestCollectorPercentLeavesHeadroom(t *testing.T) {
	for _, c := range []struct {
		live, scanned uint64
		want          int
	}{
		{0, 0, 4800},               // as of a heap of 4 MB
		{20 << 20, 10 << 20, 1060}, // 20 MB may grow by 212 MB
		{20 << 20, 30 << 20, 1160}, // what is scanned was measured before something was freed
		{1 << 30, 20 << 20, 22},    // a cache of 1 GB does not double
		{maxHeadroom, maxHeadroom / 2, 200},
		{10 * maxHeadroom, 5 * maxHeadroom, 110},
	} {
		if got := collectorPercent(c.live, c.scanned, maxHeadroom); got != c.want {
			t.Errorf("%d live bytes, %d scanned: %d %%, want %d", c.live, c.scanned, got, c.want)
		}
	}
}

func TestTheHeadroomIsAPartOfTheMemory(t *testing.T) {
	for memory, want := range map[uint64]uint64{256 << 20: minHeadroom, 1 << 30: 128 << 20, 64 << 30: maxHeadroom} {
		if got := headroom(memory); got != want {
			t.Errorf("of %d MB %d MB, want %d", memory>>20, got>>20, want>>20)
		}
	}
}

func TestAProcessWithLittleMemoryHasALimit(t *testing.T) {
	for memory, small := range map[uint64]bool{128 << 20: true, 511 << 20: true, 512 << 20: false, 64 << 30: false,
		1<<63 - 1: false} {
		limit, got := runtimeLimit(memory)
		if got != small {
			t.Errorf("with %d MiB: a limit: %t", memory>>20, got)
		}
		if small && (uint64(limit) > memory-memory/8 || uint64(limit) < memory/2) {
			t.Errorf("with %d MiB: a limit of %d", memory>>20, limit>>20)
		}
	}
}

func TestLimitedPercentBoundsWhatACommandUses(t *testing.T) {
	for live, want := range map[uint64]int{
		0: 100, commandHeadroom / 2: 100, commandHeadroom: 100, // as by default
		2 * commandHeadroom:  50,
		10 * commandHeadroom: 25, // or else it would collect all the time
	} {
		if got := limitedPercent(live, live); got != want {
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
