package memory

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// commandRoom is by how many bytes the heap of a command may grow between two collections.
const commandRoom = 64 * mib

// Tune has the runtime keep to a budget, for a process that serves: it collects when it has taken all of it, and not
// when the heap has doubled. By default it does the latter: with 20 MB of live objects that is many times a second.
//
// Live objects may need more than the budget. So the limit is set again after each collection, to what is live and
// some room. GOGC in the environment switches this off.
func Tune(b Budget) {
	if os.Getenv("GOGC") != "" {
		return
	}
	set := func() { debug.SetMemoryLimit(int64(b.limit(readUsage()))) }
	set()
	debug.SetGCPercent(-1)
	afterCollection(set)
}

// usage is what the runtime holds after a collection.
type usage struct {
	live    uint64 // objects
	scanned uint64 // bytes of them that the collector goes through
	other   uint64 // of the runtime itself, of stacks, and what lies between objects
	free    uint64 // garbage, and what the runtime has taken for further objects
}

func readUsage() usage {
	samples := []metrics.Sample{
		{Name: "/gc/heap/live:bytes"}, {Name: "/gc/scan/heap:bytes"}, {Name: "/memory/classes/total:bytes"},
		{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/free:bytes"},
		{Name: "/memory/classes/heap/released:bytes"},
	}
	metrics.Read(samples)
	value := func(i int) uint64 { return samples[i].Value.Uint64() }
	live, objects, free := value(0), value(3), value(4)
	return usage{live: live, scanned: value(1), other: value(2) - objects - free - value(5),
		free: free + objects - min(objects, live)}
}

// limit returns how many bytes the runtime may take until the next collection. The more of the heap it goes through,
// the more has to be allocated for that to be worth it.
func (b Budget) limit(u usage) uint64 {
	room := max(b.Room, 2*u.scanned)
	return max(b.Heap, min(u.live+u.other+room, b.Most))
}

// TuneCommand lets the heap grow by commandRoom where it would by more: a command has less right to memory than what
// else runs on the machine. GOGC or GOMEMLIMIT in the environment take precedence.
func TuneCommand() {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	set := func() { debug.SetGCPercent(commandPercent(readUsage().live)) }
	set()
	afterCollection(set)
}

// commandPercent is the GOGC that lets a heap with so many live bytes grow by commandRoom, at most by all and at least
// by a quarter of them.
func commandPercent(live uint64) int {
	return int(max(25, 100*commandRoom/max(live, commandRoom)))
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
