package main

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// heapHeadroom is how many bytes the heap may grow between two collections besides twice those that the collector scans.
const heapHeadroom = 128 << 20

// tuneCollector lets the heap grow by twice the bytes that the collector scans, plus heapHeadroom, before it runs. By default
// it runs when the heap has doubled: with 20 MB of live objects many times a second, and with a large cache of blocks, which
// it does not scan, only after as much memory again is used. The percentage is set again after each collection.
// GOGC or GOMEMLIMIT in the environment take precedence.
func tuneCollector() {
	for _, name := range []string{"GOGC", "GOMEMLIMIT"} {
		if os.Getenv(name) != "" {
			return
		}
	}
	setCollectorPercent()
	afterCollection(setCollectorPercent)
}

func setCollectorPercent() {
	samples := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/gc/scan/heap:bytes"}}
	metrics.Read(samples)
	debug.SetGCPercent(collectorPercent(samples[0].Value.Uint64(), samples[1].Value.Uint64()))
}

// collectorPercent is the GOGC that lets a heap with so many live bytes grow by twice the scanned ones plus
// heapHeadroom: as much as by default where it scans half of the heap.
func collectorPercent(live, scanned uint64) int {
	const smallest = 4 << 20 // the runtime collects no smaller heap
	return int(100 * (2*min(scanned, live) + heapHeadroom) / max(live, smallest))
}

// sentinel holds a pointer, so that the runtime allocates it alone and frees it in the next collection.
type sentinel struct{ _ *sentinel }

// afterCollection calls do after each collection.
func afterCollection(do func()) {
	runtime.AddCleanup(&sentinel{}, func(struct{}) {
		do()
		afterCollection(do)
	}, struct{}{})
}
