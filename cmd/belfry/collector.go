package main

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// heapHeadroom is how many bytes the heap may grow between two collections besides doubling.
const heapHeadroom = 128 << 20

// tuneCollector lets the heap grow to twice its live objects plus heapHeadroom before the collector
// runs. By default it runs when the heap has doubled, which with 20 MB of live objects is many times a
// second. The percentage is set again after each collection, so with many live objects it approaches
// the default, and memory use stays bounded. GOGC or GOMEMLIMIT in the environment take precedence.
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
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	debug.SetGCPercent(collectorPercent(sample[0].Value.Uint64()))
}

// collectorPercent is the GOGC that lets a heap with so many live bytes grow by as many plus
// heapHeadroom.
func collectorPercent(live uint64) int {
	const smallest = 4 << 20 // the runtime collects no smaller heap
	return int(100 + 100*heapHeadroom/max(live, smallest))
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
