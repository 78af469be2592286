package main

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"

	"belfry/pkg/app/open"
)

// By how many bytes the heap may grow between two collections: while belfry serves, besides twice those that the
// collector scans, an eighth of its memory within these bounds; and while a command reads everything.
const (
	minHeadroom     = 64 << 20
	maxHeadroom     = 192 << 20
	headroomPart    = 8
	commandHeadroom = 64 << 20
)

func headroom(memory uint64) uint64 { return min(max(memory/headroomPart, minHeadroom), maxHeadroom) }

// A process with less than smallMemory has no room for the headroom beside the buffers of two hashes and its caches:
// the kernel would end it. The runtime then keeps to a limit instead, and has no ballast, which would count.
const (
	smallMemory = 512 << 20
	memoryPart  = 0.8 // of it; the rest is for the pages of files and of the program
)

// runtimeLimit returns the limit of a process that may use so many bytes, and whether it has one.
func runtimeLimit(memory uint64) (limit int64, small bool) {
	return int64(memoryPart * float64(memory)), memory < smallMemory
}

const ballastSize = 256 << 20

// newBallast returns memory that is to stay live, and is never written to: it takes addresses and no memory.
//
// The headroom is set as a percentage of the live bytes. These differ from one collection to the next by the buffers of
// the password hashes at work, 19 MB each. The percentage of the last collection counts until that of this one is set,
// so it gave too much room or too little.
//
// The runtime returned memory to the system that the next hash took back page by
// page: a tenth of the time of a login. With the ballast the two differ little.
//
// It is called when belfry has started, before a collection: it needs one, for which the start does not wait.
func newBallast() []byte {
	if _, small := runtimeLimit(open.Memory()); small || isTunedByEnvironment() {
		return nil
	}
	debug.SetGCPercent(collectorPercent(ballastSize, 0, minHeadroom)) // until it is set after that collection
	return make([]byte, ballastSize)
}

// tuneCollector lets the heap grow by twice the bytes that the collector scans, plus the headroom, before it runs. By
// default it runs when the heap has doubled. With 20 MB of live objects, that is many times a second. With a large
// cache of blocks, which it does not scan, it is only after as much memory again is used.
//
// The percentage is set again after each collection. With little memory it sets the runtime's limit. GOGC or GOMEMLIMIT
// in the environment take precedence.
func tuneCollector() {
	memory := open.Memory() // before a limit is set, which would count
	if limit, small := runtimeLimit(memory); small {
		if !isTunedByEnvironment() {
			debug.SetMemoryLimit(limit)
		}
		return
	}
	room := headroom(memory)
	tuneCollectorBy(func(live, scanned uint64) int { return collectorPercent(live, scanned, room) })
}

// limitCollector lets the heap grow by commandHeadroom where it would by more: a command has less right to memory than
// what else runs on the machine. GOGC or GOMEMLIMIT in the environment take precedence.
func limitCollector() { tuneCollectorBy(limitedPercent) }

func isTunedByEnvironment() bool { return os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" }

// tuneCollectorBy sets the percentage by the bytes that are live, and those of them that are scanned, after each
// collection.
func tuneCollectorBy(percent func(live, scanned uint64) int) {
	if isTunedByEnvironment() {
		return
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
// a room: as much as by default where it scans half of the heap.
func collectorPercent(live, scanned, room uint64) int {
	const smallest = 4 << 20 // the runtime collects no smaller heap
	return int(100 * (2*min(scanned, live) + room) / max(live, smallest))
}

// limitedPercent is the GOGC that lets a heap with so many live bytes grow by commandHeadroom, at most by all and at
// least by a quarter of them.
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
