package plan

import (
	"maps"
	"slices"
	"strings"

	"belfry/config"
	"belfry/pkg/computed"
	"belfry/pkg/store"
	"belfry/pkg/store/aggregate"
	"belfry/pkg/store/policy"
)

// Limits of an entry of a mapped array: its bytes, and the number of the largest entries that an array can hold at
// least.
const (
	maxEntry   = 64 << 10
	minEntries = 16
)

// compileMapping compiles the mapping of a store into a target.
func (p *Plan) compileMapping(s *config.Store, target string) (store.Mapping, config.Problems) {
	c := s.Map[target]
	m := store.Mapping{
		Source: s.Name, Target: target, Key: c.Key, Array: c.Target, Fields: c.Fields, Cascade: c.Cascade,
		Limit: c.Limit, MaxBytes: int(c.MaxBytes), MaxEntry: min(maxEntry, int(c.MaxBytes)/minEntries),
		Aggregates: compileAggregates(c),
	}
	if c.SameOwner {
		m.SourceOwner, m.TargetOwner = p.Config.OwnerField(s.Name), p.Config.OwnerField(target)
	}
	if c.When == "" {
		return m, nil
	}
	when, problems := p.compileWhen(s, target, c)
	if when != nil {
		m.When = when
	}
	return m, problems
}

// compileWhen compiles the condition of a mapping. It must not read properties that workers write, because their writes
// do not trigger the mapping. It must not read properties that are hidden from readers of the entries.
func (p *Plan) compileWhen(s *config.Store, target string, m config.Mapping) (*policy.Condition, config.Problems) {
	var problems config.Problems
	at := "stores." + s.Name + ".map." + target + ".when"
	when, found := policy.CompileCondition(m.When)
	for _, f := range found {
		problems = append(problems, p.Config.Problem(at, "in the expression at %d:%d: %s", f.Line, f.Column, f.Message))
	}
	if when == nil {
		return nil, problems
	}
	arrays := computed.MappedArrays(p.Config, s.Name)
	for _, field := range when.Fields() {
		switch {
		case slices.Contains(arrays, field):
			problems = append(problems,
				p.Config.Problem(at, "%q is an array that a mapping maintains; its changes would not be noticed",
					field))
		case strings.HasPrefix(field, "_"):
			problems = append(problems, p.Config.Problem(at, "%q is internal to belfry", field))
		case s.Hides(field):
			problems = append(problems, p.revealed(s, target, at, field, m)...)
		}
	}
	return when, problems
}

// checkOrdered refuses a mapping with more least and greatest values than there are indexes for.
func (p *Plan) checkOrdered() (problems config.Problems) {
	for i := range p.Mappings {
		m := &p.Mappings[i]
		if fields := m.Ordered(); len(fields) > aggregate.MaxOrdered {
			problems = append(problems, p.Config.Problem("stores."+m.Source+".map."+m.Target+".aggregates",
				"min and max are of %d properties (%s), and can be of %d: leave some out", len(fields),
				strings.Join(fields, ", "), aggregate.MaxOrdered))
		}
	}
	return problems
}

// revealed returns a problem for each property of the target that reveals something about a hidden field of the sources
// and that everyone may read.
func (p *Plan) revealed(s *config.Store, target, at, field string, m config.Mapping) (problems config.Problems) {
	properties := slices.Sorted(maps.Keys(m.Aggregates))
	if m.Target != "" {
		properties = append(properties, m.Target)
	}
	for _, property := range properties {
		if p.Config.Stores[target].Fields[property].Read == "" {
			problems = append(problems,
				p.Config.Problem(at, "some clients may not read %q in %s, and an entry reveals something about it; "+
					"restrict the entries: add a read rule for %s to stores.%s.fields",
					field, s.Name, property, target))
		}
	}
	return problems
}
