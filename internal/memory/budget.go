// Package memory divides the memory that a process may use among those that hold much of it, and has the runtime keep
// to its part.
package memory

import (
	"math"
	"runtime"
	"runtime/debug"
	"sync"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

// Budget says how many bytes each part of a process may hold.
type Budget struct {
	Process uint64 // that the process may use: GOMEMLIMIT, the limit of its control group, or the machine's memory

	Heap uint64 // that the runtime takes, with what follows, unless more of it must be kept
	Most uint64 // that the runtime takes in any case, if that is possible; the pages of the program come on top
	Room uint64 // that is free in the heap after a collection, at least: less has the collector run all the time

	Cache     int64 // blocks of a backend of type file
	CacheMost int64 // the same, where the folder has much data
	MemTable  int64 // writes of such a backend that are in no table yet; mostly there are two
	Hashes    int   // password hashes at once
	Uploads   int64 // parts of uploads that a storage sends, all together
	Pictures  int64 // that are decoded for thumbnails, all together
	Lists     int   // pages of lists in flight, all together
}

const mib = 1 << 20

// The parts of a budget.
const (
	heapPart       = 0.6 // of the memory of the process; the rest is for pages of the program and of files
	mostPart       = 0.75
	commonHeap     = 112 * mib // that no process needs to exceed without much data, and
	heapProcessor  = 32 * mib  // as much more for each processor
	cacheShare     = 7
	cacheMostPart  = 8 // of the memory of the process
	maxCache       = 1024 * mib
	memTableShare  = 20
	roomShare      = 5
	hashShare      = 3
	hashBytes      = 19 * mib
	uploadShare    = 2
	maxUploads     = 256 * mib
	pictureShare   = 4
	maxPictures    = 192 * mib
	listShare      = 6
	maxLists       = 24 * mib
	minCache       = 8 * mib
	minMemTable    = 1 * mib
	maxMemTable    = 16 * mib
	minRoom        = 16 * mib
	minLists       = 8 * mib
	minUploads     = 16 * mib
	largestProcess = math.MaxInt64
)

// Divide makes the budget of a process that may use so many bytes and has so many processors. chosen says that
// somebody has chosen the number, by GOMEMLIMIT: then it is used. Otherwise belfry takes what it needs, and leaves the
// rest to others and to the kernel's cache of files.
func Divide(process uint64, processors int, chosen bool) Budget {
	process = min(process, largestProcess)
	allowed := uint64(heapPart * float64(process))
	b := Budget{Process: process, Most: uint64(mostPart * float64(process))}
	if chosen {
		allowed, b.Most = process, process
		b.Heap = allowed
	} else {
		b.Heap = min(allowed, uint64(commonHeap+heapProcessor*processors))
	}
	b.Room = max(minRoom, b.Heap/roomShare)
	b.Cache = int64(max(minCache, b.Heap/cacheShare))
	b.CacheMost = max(b.Cache, int64(min(process/cacheMostPart, maxCache)))
	b.MemTable = int64(min(max(minMemTable, b.Heap/memTableShare), maxMemTable))
	b.Hashes = int(min(max(1, allowed/hashShare/hashBytes), uint64(processors)))
	b.Uploads = int64(min(max(minUploads, allowed/uploadShare), maxUploads))
	b.Pictures = int64(min(max(minUploads, allowed/pictureShare), maxPictures))
	b.Lists = int(min(max(minLists, allowed/listShare), maxLists))
	return b
}

// Of is the budget of this process. It is made once.
var Of = sync.OnceValue(func() Budget {
	process, chosen := uint64(debug.SetMemoryLimit(-1)), true // that of GOMEMLIMIT, if there is one
	for _, limit := range []func() (uint64, error){memlimit.FromCgroup, memlimit.FromSystem} {
		if n, err := limit(); err == nil && n > 0 && n < process {
			process, chosen = n, false
		}
	}
	return Divide(process, runtime.GOMAXPROCS(0), chosen)
})
