package fill

import (
	"maps"
	"slices"
	"time"
)

// Status is how far a work is, as this process has last read it.
type Status struct {
	Source, Target, Array string // of a mapping; of other works the store alone, as Target
	Upgrades              bool   // the work makes up for what a release before did not do, as about whole numbers in keys

	Indexes  bool // the work is to build the indexes of the store Target
	Building bool // of these, some are not complete, as the backend has said last

	Filled  bool // by the configuration of this process
	Waiting bool // for processes with another configuration to end, if there are any
	Others  bool // such a process is known to run
	Running bool // by this process or another, or interrupted

	Targets, Total  int64     // objects that are done, of how many approximately
	Objects, Failed int64     // entries that were computed, and objects that can't be filled
	Began, Ended    time.Time // of the fill; zero when there was none
}

// Status returns how far everything is that this process has to fill, by name.
func (f *Filler) Status() []Status {
	s := f.current.Load()
	var all []Status
	for _, name := range slices.Sorted(maps.Keys(f.works)) {
		w := f.works[name]
		st := Status{Target: w.store.Name(), Filled: s.filled(name, w.definition), Waiting: s.disputed(name), Others: f.disputed(s, name), Upgrades: w.needs != nil}
		if w.build != nil {
			st.Indexes, st.Building = true, len(w.build.Known()) > 0
		}
		if w.mapping != nil {
			st.Source, st.Array = w.mapping.Source, w.mapping.Array
		}
		if r := s.Works[name]; r != nil {
			p := r.Fill
			st.Running = p != nil
			if p == nil && st.Filled {
				p, st.Ended = r.Last, r.At
			}
			if p != nil {
				st.Targets, st.Total, st.Objects, st.Failed, st.Began = p.Targets, p.Total, p.Objects, p.Failed, p.Began
			}
		}
		all = append(all, st)
	}
	return all
}

// Targets returns how many objects this process has filled.
func (f *Filler) Targets() int64 { return f.targets.Load() }
