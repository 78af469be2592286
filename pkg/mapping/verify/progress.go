package verify

import (
	"sync/atomic"

	"belfry/pkg/store"
)

// Progress is how far a verification is.
type Progress struct {
	// the mapping that is being read: "Books in Authors.books"; "" when all have been
	Reading  string `json:"reading,omitempty"`
	Repair   bool   `json:"repair,omitempty"`
	Objects  int64  `json:"objects"`  // source objects read
	Targets  int64  `json:"targets"`  // targets compared
	Differ   int64  `json:"differ"`   // objects that differed: targets when all had been read, others when they were
	Settled  int64  `json:"settled"`  // of those, the ones that are correct now
	Repaired int64  `json:"repaired"` // of those, the ones that this run corrected
}

// Tracker holds the progress of one verification, for other goroutines to read. The
// zero Tracker is ready to use.
type Tracker struct {
	mapping                                     atomic.Pointer[store.Mapping]
	repair                                      atomic.Bool
	objects, targets, differ, settled, repaired atomic.Int64
}

// Progress returns the current progress.
func (t *Tracker) Progress() Progress {
	p := Progress{
		Repair: t.repair.Load(), Objects: t.objects.Load(), Targets: t.targets.Load(),
		Differ: t.differ.Load(), Settled: t.settled.Load(), Repaired: t.repaired.Load(),
	}
	if m := t.mapping.Load(); m != nil {
		p.Reading = describe(m)
	}
	return p
}

// corrected counts objects that differed, and were corrected as they were read.
func (t *Tracker) corrected(n int64) {
	t.differ.Add(n)
	t.settled.Add(n)
	t.repaired.Add(n)
}

func (t *Tracker) reading(m *store.Mapping) { t.mapping.Store(m) }

func (t *Tracker) settling(candidates int, repair bool) {
	t.mapping.Store(nil)
	t.repair.Store(repair)
	t.differ.Add(int64(candidates))
}
