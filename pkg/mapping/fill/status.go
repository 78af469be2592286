package fill

import (
	"maps"
	"slices"
	"time"
)

// Status is how far the arrays of a mapping are filled, as this process has last read it.
type Status struct {
	Source, Target, Array string

	Filled  bool // all arrays are, by the configuration of this process
	Waiting bool // for processes with another configuration to end
	Running bool // by this process or another, or interrupted

	Targets, Total  int64     // arrays that are filled, of how many approximately
	Objects, Failed int64     // entries that were computed, and arrays that can't be written
	Began, Ended    time.Time // of the fill; zero when there was none
}

// Status returns how far the mappings of this process are filled, by name.
func (f *Filler) Status() []Status {
	s := f.current.Load()
	var all []Status
	for _, name := range slices.Sorted(maps.Keys(f.own)) {
		m := f.mappings[name]
		st := Status{Source: m.Source, Target: m.Target, Array: m.Array}
		if r := s.Mappings[name]; r != nil {
			st.Filled = r.Filled == f.own[name]
			st.Waiting, st.Running = len(r.Seen) > 1, r.Fill != nil
			p := r.Fill
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

// Targets returns how many arrays this process has filled.
func (f *Filler) Targets() int64 { return f.targets.Load() }
