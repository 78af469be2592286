package plan

import (
	"cmp"
	"maps"
	"slices"

	"belfry/config"
	"belfry/pkg/store"
	"belfry/pkg/store/policy"
)

// fieldOf is a property of a store.
type fieldOf struct{ store, field string }

func (f fieldOf) String() string { return f.store + "." + f.field }

// derivations are the properties on which each property depends that belfry derives: computed properties, copies,
// arrays and aggregates.
type derivations map[fieldOf][]fieldOf

func (d derivations) add(of fieldOf, reads ...fieldOf) { d[of] = append(d[of], reads...) }

// followDerived finds the mappings whose copies depend on what belfry derives. It refuses properties that depend on
// themselves: workers would never be done with them.
func (p *Plan) followDerived() (problems config.Problems) {
	derived := derivations{}
	paths := map[fieldOf]string{} // of the keys that make the properties
	for i := range p.Stores {
		o := &p.Stores[i]
		p.addComputed(derived, paths, o.Name, o.Computed)
		for _, c := range o.Copies {
			of := fieldOf{o.Name, c.Field}
			paths[of] = "stores." + o.Name + ".copies." + c.Field
			derived.add(of, fieldOf{o.Name, c.Reference}, fieldOf{c.Source, c.From})
		}
	}
	for i := range p.Mappings {
		p.addMapping(derived, paths, &p.Mappings[i])
	}
	for i := range p.Mappings {
		m := &p.Mappings[i]
		m.FollowsWorkers = slices.ContainsFunc(dependsOn(m),
			func(field string) bool { return derived[fieldOf{m.Source, field}] != nil })
	}
	byName := func(a, b fieldOf) int { return cmp.Compare(a.String(), b.String()) }
	for _, start := range slices.SortedFunc(maps.Keys(derived), byName) {
		cycle := cycleFrom(start, derived)
		reported := slices.ContainsFunc(cycle, func(f fieldOf) bool { return byName(f, start) < 0 })
		if cycle != nil && !reported {
			problems = append(problems, p.Config.Problem(paths[start], "depends on itself: %s", describeCycle(cycle)))
		}
	}
	return problems
}

func (p *Plan) addComputed(d derivations, paths map[fieldOf]string, in string, c *policy.Computed) {
	for _, field := range c.Names() {
		of := fieldOf{in, field}
		paths[of] = "stores." + in + ".computed." + field
		d.add(of, []fieldOf{}...)
		for _, read := range c.Reads(field) {
			d.add(of, fieldOf{in, read})
		}
	}
}

// addMapping adds what the array and the aggregates of a mapping depend on.
func (p *Plan) addMapping(d derivations, paths map[fieldOf]string, m *store.Mapping) {
	at := "stores." + m.Source + ".map." + m.Target
	made := map[fieldOf]string{}
	if m.Array != "" {
		made[fieldOf{m.Target, m.Array}] = at + ".target"
	}
	for _, a := range m.Aggregates {
		made[fieldOf{m.Target, a.Property}] = at + ".aggregates." + a.Property
	}
	for of, path := range made {
		paths[of] = path
		for _, field := range dependsOn(m) {
			if field != "" {
				d.add(of, fieldOf{m.Source, field})
			}
		}
	}
}

// dependsOn returns the properties of a source object on which its entry and its part of aggregates depend.
func dependsOn(m *store.Mapping) []string {
	fields := append([]string{m.Key, m.SourceOwner}, m.Fields...)
	for _, a := range m.Aggregates {
		fields = append(fields, a.Field)
	}
	if when, ok := m.When.(*policy.Condition); ok {
		fields = append(fields, when.Fields()...)
	}
	return fields
}

// cycleFrom returns the path from a property back to itself, or nil.
func cycleFrom(start fieldOf, reads derivations) []fieldOf {
	seen := map[fieldOf]bool{}
	var find func(at fieldOf) []fieldOf
	find = func(at fieldOf) []fieldOf {
		for _, next := range reads[at] {
			if next == start {
				return []fieldOf{at}
			}
			if seen[next] {
				continue
			}
			seen[next] = true
			if rest := find(next); rest != nil {
				return append([]fieldOf{at}, rest...)
			}
		}
		return nil
	}
	return find(start)
}

func describeCycle(cycle []fieldOf) string {
	text := ""
	for _, f := range cycle {
		text += f.String() + " reads "
	}
	return text + cycle[0].String()
}
