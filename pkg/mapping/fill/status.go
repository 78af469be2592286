package fill

import (
	"cmp"
	"maps"
	"slices"

	"belfry/pkg/walk"
)

// Status is how far a work is, as this process has last read it.
type Status struct {
	walk.Status

	Source, Target, Array string // of a mapping; of other works the store alone, as Target
	Others                bool   // a process with another configuration is known to run
}

// Status returns how far everything is that this process has to fill, by name.
func (f *Filler) Status() []Status {
	s := f.current.Load()
	var all []Status
	for _, name := range slices.Sorted(maps.Keys(f.works)) {
		w := f.works[name]
		st := Status{Target: w.store.Name(), Others: f.disputed(s, name)}
		st.Kind, st.Name, st.Waiting = w.kind, cmp.Or(w.shown, name), s.disputed(name)
		if w.mapping != nil {
			st.Source, st.Array = w.mapping.Source, w.mapping.Array
		}
		if r := s.Works[name]; r != nil {
			st.Repairing, st.Running = r.Again != "", r.Fill != nil
			st.Filled = s.filled(name, w.definition) || w.onlyAgain && !st.Repairing
			p := r.Fill
			if p == nil && r.Filled == w.definition {
				p, st.Ended = r.Last, r.At
			}
			if p != nil {
				st.Began, st.Total, st.Counts = p.Began, p.Total, p.Counts
			}
		}
		all = append(all, st)
	}
	return all
}

// Targets returns how many objects this process has filled.
func (f *Filler) Targets() int64 { return f.targets.Load() }
