package plan

import (
	"slices"

	"belfry/config"
	"belfry/pkg/computed"
	"belfry/pkg/store"
	"belfry/pkg/store/policy"
)

// compileComputed compiles the computed properties of a store.
func (p *Plan) compileComputed(s *config.Store) (*policy.Computed, config.Problems) {
	if len(s.Computed) == 0 {
		return nil, nil
	}
	at := "stores." + s.Name + ".computed"
	var problems config.Problems
	compiled, found := computed.Compile(p.Config, s)
	for _, f := range found {
		problems = append(problems,
			p.Config.Problem(at+"."+f.Field, "in the expression at %d:%d: %s", f.Line, f.Column, f.Message))
	}
	arrays := computed.MappedArrays(p.Config, s.Name)
	for _, name := range slices.Concat(s.Unique...) {
		if kind := compiled.Type(name); kind == "array" || kind == "object" {
			problems = append(problems, p.Config.Problem("stores."+s.Name+".unique",
				"%q is computed, and an %s; a unique value is a string, a number, true or false", name, kind))
		}
		if i := slices.IndexFunc(compiled.Reads(name),
			func(read string) bool { return slices.Contains(arrays, read) }); i >= 0 {
			problems = append(problems, p.Config.Problem("stores."+s.Name+".unique",
				"%q is computed from %q, an array that workers write: if another object had the value, they could "+
					"not write the array", name, compiled.Reads(name)[i]))
		}
	}
	for _, name := range compiled.Names() {
		if s.NeverRead(name) || s.Fields[name].Read != "" {
			continue
		}
		for _, read := range compiled.Reads(name) {
			if !s.ReadByAll(read) || s.NeverRead(read) {
				problems = append(problems, p.Config.Problem(at+"."+name,
					"reads %q, which some readers of the object may not read; restrict %q as well: add a read rule "+
						"to stores.%s.fields, or the property to private", read, name, s.Name))
				break
			}
		}
	}
	return compiled, problems
}

// fieldOf is a property of a store.
type fieldOf struct{ store, field string }

func (f fieldOf) String() string { return f.store + "." + f.field }

// followComputed finds the mappings whose copies depend on computed properties. It refuses computations that depend on
// themselves over mappings: they would never end.
func (p *Plan) followComputed() (problems config.Problems) {
	all := map[string]*policy.Computed{}
	for i := range p.Stores {
		all[p.Stores[i].Name] = p.Stores[i].Computed
	}
	reads := map[fieldOf][]fieldOf{}
	for name, c := range all {
		for _, field := range c.Names() {
			for _, read := range c.Reads(field) {
				reads[fieldOf{name, field}] = append(reads[fieldOf{name, field}], fieldOf{name, read})
			}
		}
	}
	for i := range p.Mappings {
		m := &p.Mappings[i]
		array := fieldOf{m.Target, m.Array}
		for _, field := range dependsOn(m) {
			m.FollowsWorkers = m.FollowsWorkers || all[m.Source].Has(field)
			if m.Array != "" {
				reads[array] = append(reads[array], fieldOf{m.Source, field})
			}
		}
	}
	for name, c := range all {
		for _, field := range c.Names() {
			start := fieldOf{name, field}
			cycle := cycleFrom(start, reads)
			first := !slices.ContainsFunc(cycle,
				func(f fieldOf) bool { return all[f.store].Has(f.field) && f.String() < start.String() })
			if cycle != nil && first { // each is reported once
				problems = append(problems,
					p.Config.Problem("stores."+name+".computed."+field, "depends on itself: %s", describeCycle(cycle)))
			}
		}
	}
	return problems
}

// dependsOn returns the properties of a source object on which its entry depends.
func dependsOn(m *store.Mapping) []string {
	fields := append([]string{m.Key, m.SourceOwner}, m.Fields...)
	if when, ok := m.When.(*policy.Condition); ok {
		fields = append(fields, when.Fields()...)
	}
	return fields
}

// cycleFrom returns the path from a property back to itself, or nil.
func cycleFrom(start fieldOf, reads map[fieldOf][]fieldOf) []fieldOf {
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
