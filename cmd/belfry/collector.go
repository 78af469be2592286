package main

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// By how many bytes the heap may grow between two collections: while belfry serves, besides twice those that the collector
// scans, and while a command reads everything.
const (
	heapHeadroom    = 128 << 20
	commandHeadroom = 64 << 20
)

// tuneCollector lets the heap grow by twice the bytes that the collector scans, plus heapHeadroom, before it runs. By default
// it runs when the heap has doubled: with 20 MB of live objects many times a second, and with a large cache of blocks, which
// it does not scan, only after as much memory again is used. The percentage is set again after each collection.
// GOGC or GOMEMLIMIT in the environment take precedence.
func tuneCollector() { tuneCollectorBy(collectorPercent) }

// limitCollector lets the heap grow by commandHeadroom where it would by more: a command has less right to memory than what else
// runs on the machine. GOGC or GOMEMLIMIT in the environment take precedence.
func limitCollector() { tuneCollectorBy(limitedPercent) }

// tuneCollectorBy sets the percentage by the bytes that are live, and those of them that are scanned, after each collection.
func tuneCollectorBy(percent func(live, scanned uint64) int) {
	for _, name := range []string{"GOGC", "GOMEMLIMIT"} {
		if os.Getenv(name) != "" {
			return
		}
	}
	set := func() {
		samples := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/gc/scan/heap:bytes"}}
		metrics.Read(samples)
		debug.SetGCPercent(percent(samples[0].Value.Uint64(), samples[1].Value.Uint64()))
	}
	set()
	afterCollection(set)
}

// collectorPercent is the GOGC that lets a heap with so many live bytes grow by twice the scanned ones plus
// heapHeadroom: as much as by default where it scans half of the heap.
func collectorPercent(live, scanned uint64) int {
	const smallest = 4 << 20 // the runtime collects no smaller heap
	return int(100 * (2*min(scanned, live) + heapHeadroom) / max(live, smallest))
}

// limitedPercent is the GOGC that lets a heap with so many live bytes grow by commandHeadroom, at most by all and at least by a
// quarter of them.
func limitedPercent(live, _ uint64) int {
	return int(max(25, 100*commandHeadroom/max(live, commandHeadroom)))
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
