package fill

import (
	"maps"
	"slices"

	"belfry/pkg/walk"
)

// Status returns how far everything is that processes have to fill, by name, as this one has last read it.
func (f *Filler) Status() []walk.Status {
	s := f.current.Load()
	var all []walk.Status
	for _, name := range slices.Sorted(maps.Keys(f.works)) {
		w := f.works[name]
		st := walk.Status{Kind: w.kind, Name: w.shown, Store: w.store.Name(), Waiting: s.disputed(name),
			Others: f.disputed(s, name), Refuses: w.refuses}
		if w.mapping != nil {
			st.Source = w.mapping.Source
			if w.kind != walk.Aggregates { // which a mapping can have beside an array
				st.Array = w.mapping.Array
			}
		}
		if r := s.Works[name]; r != nil {
			st.Repairing, st.Running = r.Again != "", r.Fill != nil
			st.Filled = s.filled(name, w.definition) || w.onlyAgain && !s.needed(name, w)
			p := r.Fill
			if p == nil && r.Filled == w.definition {
				p, st.Ended = r.Last, r.At
			}
			if p != nil {
				st.Began, st.Total, st.Counts = p.Began, p.Total, p.Counts
			}
		}
		if w.build != nil { // requests depend on what the backend says
			st.Filled = len(w.build.Known()) == 0
		}
		all = append(all, st)
	}
	return all
}

// Removed returns the mappings that no process has any longer, as "Books in Authors.books". Objects keep their copies.
func (f *Filler) Removed() []string { return slices.Sorted(maps.Keys(f.current.Load().Removed)) }

// Targets returns how many objects this process has filled.
func (f *Filler) Targets() int64 { return f.targets.Load() }
