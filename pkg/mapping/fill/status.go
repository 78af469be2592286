package fill

import (
	"maps"
	"slices"
	"time"
)

// Status is how far the arrays of a mapping, or the computed fields of a store, are filled, as this process has last
// read it.
type Status struct {
	Source, Target, Array string // of computed fields the Target alone

	Filled  bool // all arrays are, by the configuration of this process
	Waiting bool // for processes with another configuration to end
	Running bool // by this process or another, or interrupted

	Targets, Total  int64     // arrays that are filled, of how many approximately
	Objects, Failed int64     // entries that were computed, and arrays that can't be written
	Began, Ended    time.Time // of the fill; zero when there was none
}

// Status returns how far everything is that this process has to fill, by name.
func (f *Filler) Status() []Status {
	s := f.current.Load()
	var all []Status
	for _, name := range slices.Sorted(maps.Keys(f.own)) {
		st := Status{Target: f.works[name].store().Name()}
		if a, ok := f.works[name].(arrays); ok {
			st.Source, st.Array = a.m.Source, a.m.Array
		}
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
