package main

import (
	"runtime"
	"testing"

	"belfry/test/kit"
)

func TestCollectorPercentLeavesHeadroom(t *testing.T) {
	for live, want := range map[uint64]int{
		0:                 3300, // as of a heap of 4 MB
		20 << 20:          740,  // 20 MB may grow by 148 MB
		heapHeadroom:      200,
		10 * heapHeadroom: 110,
	} {
		if got := collectorPercent(live); got != want {
			t.Errorf("%d bytes: %d %%, want %d", live, got, want)
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
