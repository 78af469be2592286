package check

import (
	"encoding/json"
	"maps"
	"slices"

	"belfry/pkg/event"
	"belfry/test/chaos/history"
)

// derived returns the copies that a write sets in its object, and the aggregates of a new one.
func (s *story) derived(o history.Object, next map[string]any, created bool) map[string]any {
	change := map[string]any{}
	for _, c := range history.StoreOf(o.Store).Copies {
		change[c.Field] = nil
		if named, ok := next[c.Reference].(string); ok {
			change[c.Field] = s.objects[history.Object{Store: c.Source, UUID: named}][c.From]
		}
	}
	for _, m := range history.All() {
		if m.Target == o.Store && created {
			maps.Copy(change, aggregatesOf(m, nil))
		}
	}
	return change
}

func aggregatesOf(m history.Store, sources []history.State) map[string]any {
	all := map[string]any{}
	for _, a := range m.Aggregates {
		all[a.Property] = nil
		if value := aggregate(a, sources); value != "" {
			all[a.Property] = json.RawMessage(value)
		}
	}
	return all
}

// settle lets the workers of copies and aggregates write, until nothing differs.
func (s *story) settle() {
	s.t.Helper()
	for again := true; again; {
		again = false
		for _, o := range slices.SortedFunc(maps.Keys(s.objects), history.Compare) {
			again = s.write(o, event.OriginCopy, s.derived(o, s.objects[o], false)) || again
			for _, m := range history.All() {
				if m.Target != o.Store {
					continue
				}
				var sources []history.State
				for source, state := range s.Final {
					if source.Store == m.Name && slices.Contains(history.Targets(state.Body, m.Key), o.UUID) {
						sources = append(sources, state)
					}
				}
				again = s.write(o, event.OriginAggregate, aggregatesOf(m, sources)) || again
			}
		}
	}
}

// write lets a worker change an object, and reports whether something differed.
func (s *story) write(o history.Object, origin string, change map[string]any) bool {
	differs := func(name string, value any) bool {
		return toJSON(value) != toJSON(s.objects[o][name])
	}
	for name, value := range change {
		if differs(name, value) {
			s.happen(o, event.StoreUpdated, origin, "", change)
			return true
		}
	}
	return false
}

func toJSON(value any) string {
	data, err := json.Marshal(value)
	if err != nil {
		panic(err) // it was read from JSON
	}
	return string(data)
}
