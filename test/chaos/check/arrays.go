package check

import (
	"slices"

	"belfry/test/chaos/history"
)

// arrays computes every mapped array from the objects and compares.
func arrays(s *history.Segment, r *Report) {
	for _, m := range history.All() {
		if m.Array == "" {
			continue
		}
		named := map[string][]string{} // sources by the uuid of the target that they name
		for o, state := range s.Final {
			if o.Store != m.Name {
				continue
			}
			for _, target := range history.Targets(state.Body, m.Key) {
				named[target] = append(named[target], o.UUID)
			}
		}
		for o, state := range s.Final {
			if o.Store == m.Target {
				array(s, r, m, o, state, named[o.UUID])
			}
		}
	}
}

// array compares one array with the objects that name its target.
func array(s *history.Segment, r *Report, m history.Store, target history.Object, state history.State,
	sources []string) {
	entries, err := history.Entries(state.Body, m.Array)
	if err != nil {
		r.add(WrongArray, target, "%v", err)
		return
	}
	r.Entries += len(entries)
	has := map[string]bool{}
	for _, e := range entries {
		switch source := s.Final[history.Object{Store: m.Name, UUID: e.UUID}]; {
		case has[e.UUID]:
			r.add(WrongArray, target, "%s has two entries for %s", m.Array, e.UUID)
		case !slices.Contains(sources, e.UUID):
			r.add(WrongArray, target, "%s has an entry for %s, which is not there or does not name it", m.Array, e.UUID)
		case history.Project(e.UUID, source.Body, m.Fields) != e.JSON:
			r.add(WrongArray, target, "%s has the entry %s; the object %s has %s", m.Array, e.JSON, e.UUID,
				history.Project(e.UUID, source.Body, m.Fields))
		}
		has[e.UUID] = true
	}
	want := len(sources)
	if m.Limit > 0 && want > m.Limit {
		want = m.Limit
		r.Overflows++
	}
	if len(entries) == want {
		return
	}
	var missing []string
	for _, uuid := range sources {
		if !has[uuid] {
			missing = append(missing, uuid)
		}
	}
	slices.Sort(missing)
	r.add(WrongArray, target, "%s has %d entries, want %d: %d objects name it, without an entry are %v", m.Array,
		len(entries), want, len(sources), missing)
}

// lists compares the lists of the stores with the objects.
func lists(s *history.Segment, r *Report) {
	if s.Listed == nil {
		return
	}
	for o, state := range s.Final {
		listed, ok := s.Listed[o]
		if !ok {
			r.add(WrongList, o, "it is missing")
		} else if !history.Same(listed.Body, state.Body) {
			r.add(WrongList, o, "it is listed as %s; it is %s", listed.Body, state.Body)
		}
	}
	for o := range s.Listed {
		if !s.Final[o].Exists() {
			r.add(WrongList, o, "it is listed and not there")
		}
	}
}
