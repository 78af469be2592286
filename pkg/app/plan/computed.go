package plan

import (
	"maps"
	"slices"

	"belfry/config"
	"belfry/pkg/computed"
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
	written := slices.Concat(computed.MappedArrays(p.Config, s.Name), slices.Collect(maps.Keys(s.Copies)),
		slices.Collect(maps.Keys(computed.Aggregates(p.Config, s.Name))), cleared(s))
	for _, name := range slices.Concat(s.Unique...) {
		if kind := compiled.Type(name); kind == "array" || kind == "object" {
			problems = append(problems, p.Config.Problem("stores."+s.Name+".unique",
				"%q is computed, and an %s; a unique value is a string, a number, true or false", name, kind))
		}
		if i := slices.IndexFunc(compiled.Reads(name),
			func(read string) bool { return slices.Contains(written, read) }); i >= 0 {
			problems = append(problems, p.Config.Problem("stores."+s.Name+".unique",
				"%q is computed from %q, which workers write: if another object had the value, they could not write it",
				name, compiled.Reads(name)[i]))
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

// cleared returns the references that a worker changes when an object that they name is deleted.
func cleared(s *config.Store) (all []string) {
	for name, r := range s.References {
		if r.OnDelete == config.OnDeleteClear {
			all = append(all, name)
		}
	}
	return all
}
