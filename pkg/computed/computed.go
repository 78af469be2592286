// Package computed compiles the computed properties of a configuration, with what it and the schemas of its stores say
// about the properties that their expressions read.
package computed

import (
	"maps"

	"belfry/config"
	"belfry/pkg/store/policy"
)

// Compile compiles the computed properties of a store; nil for none, and when there are problems.
func Compile(c *config.Config, s *config.Store) (*policy.Computed, []policy.ComputedProblem) {
	if len(s.Computed) == 0 {
		return nil, nil
	}
	return policy.CompileComputed(s.Computed, known(c, s))
}

// MappedArrays returns the arrays that mappings maintain in a store.
func MappedArrays(c *config.Config, store string) []string {
	var all []string
	for _, s := range c.Stores {
		if m, ok := s.Map[store]; ok && m.Target != "" {
			all = append(all, m.Target)
		}
	}
	return all
}

// Aggregates returns the aggregates that mappings maintain in a store: their functions by property.
func Aggregates(c *config.Config, store string) map[string]string {
	all := map[string]string{}
	for _, s := range c.Stores {
		maps.Copy(all, s.Map[store].Aggregates)
	}
	return all
}

// known returns the properties of a store by schema and configuration.
func known(c *config.Config, s *config.Store) policy.Known {
	p := PropertiesOf(c, s)
	known := policy.Known{Arrays: p.arrays, Types: map[string]string{}}
	if p.schema != nil {
		known.Types, known.Closed = p.schema.Types(), p.schema.Complete()
		known.Suggest = p.Suggest
	}
	for _, name := range []string{"uuid", "created", "updated", s.Owner} {
		known.Types[name] = "string"
	}
	for _, name := range s.Reserved {
		known.Types[name] = "boolean"
	}
	declare := func(name string) {
		if _, declared := known.Types[name]; !declared {
			known.Types[name] = ""
		}
	}
	for _, m := range s.Map {
		declare(m.Key)
	}
	for name := range s.References {
		declare(name)
	}
	for name := range s.Copies {
		declare(name)
	}
	for name := range Aggregates(c, s.Name) {
		declare(name)
	}
	return known
}
