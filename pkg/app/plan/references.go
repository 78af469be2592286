package plan

import (
	"maps"
	"slices"

	"belfry/config"
	"belfry/config/value"
	"belfry/pkg/store"
)

// compileReferences returns the references of a store, and its copies in the order in which a write sets them: one
// whose reference is a copy comes after that.
func compileReferences(s *config.Store) (references []store.Reference, copies []store.Copy) {
	read := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(s.Copies)) {
		reference, field := s.Copies[name].Source()
		read[reference] = true
		copies = append(copies, store.Copy{
			Field: name, Reference: reference, Source: s.References[reference].Store, From: field,
		})
	}
	for _, name := range slices.Sorted(maps.Keys(s.References)) {
		r, onDelete := s.References[name], s.OnDelete(name)
		references = append(references, store.Reference{
			Field: name, Target: r.Store, Required: r.Required, OnDelete: onDelete,
			Indexed: read[name] || onDelete != config.OnDeleteKeep,
			Counted: s.Expose != nil && !s.Expose.Restrict.Get && !s.NeverRead(name),
		})
	}
	return references, inOrder(copies)
}

// inOrder returns copies with those that are references of others before these. Cycles are reported by followDerived.
func inOrder(copies []store.Copy) (ordered []store.Copy) {
	for rest := copies; len(rest) > 0; {
		var later []store.Copy
		for _, c := range rest {
			waits := slices.ContainsFunc(rest, func(other store.Copy) bool { return other.Field == c.Reference })
			if waits {
				later = append(later, c)
			} else {
				ordered = append(ordered, c)
			}
		}
		if len(later) == len(rest) {
			return append(ordered, later...)
		}
		rest = later
	}
	return ordered
}

// linkReferences has the objects of references with the value cascade deleted with those that they name, unless a
// mapping with the same key does so.
func (p *Plan) linkReferences() {
	for i := range p.Stores {
		o := &p.Stores[i]
		for _, r := range o.References {
			if r.OnDelete != config.OnDeleteCascade {
				continue
			}
			same := func(m store.Mapping) bool {
				return m.Source == o.Name && m.Target == r.Target && m.Key == r.Field
			}
			if at := slices.IndexFunc(p.Mappings, same); at >= 0 {
				p.Mappings[at].Cascade = true
				continue
			}
			p.Mappings = append(p.Mappings,
				store.Mapping{Source: o.Name, Target: r.Target, Key: r.Field, Cascade: true})
		}
	}
}

// followCopies sets which fields of stores have copies in objects of stores.
func (p *Plan) followCopies() {
	from := map[string][]string{}
	for i := range p.Stores {
		for _, c := range p.Stores[i].Copies {
			if !slices.Contains(from[c.Source], c.From) {
				from[c.Source] = append(from[c.Source], c.From)
			}
		}
	}
	for i := range p.Stores {
		o := &p.Stores[i]
		o.CopiedFrom = from[o.Name]
		slices.Sort(o.CopiedFrom)
	}
}

// compileAggregates returns the aggregates of a mapping, by their properties.
func compileAggregates(m config.Mapping) (all []store.Aggregate) {
	for _, property := range slices.Sorted(maps.Keys(m.Aggregates)) {
		function, field := value.Aggregate(m.Aggregates[property])
		all = append(all, store.Aggregate{Property: property, Function: function, Field: field})
	}
	return all
}
