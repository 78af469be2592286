package query

import "slices"

// conjunction is conditions that an object meets together.
type conjunction struct {
	conditions []condition
	fields     []string          // of the conditions, each once
	domains    map[string]domain // of a field; not of elements
}

func newConjunction(conditions []condition) conjunction {
	c := conjunction{conditions: conditions, domains: map[string]domain{}}
	for _, one := range conditions {
		name := one.field.name
		if !slices.Contains(c.fields, name) {
			c.fields = append(c.fields, name)
		}
		if one.field.elements {
			continue // one element meets one condition, another element the next
		}
		if d, ok := c.domains[name]; ok {
			c.domains[name] = d.intersect(one.domain())
		} else {
			c.domains[name] = one.domain()
		}
	}
	return c
}

// isPoints reports whether a field has one of a few parts.
func (c conjunction) isPoints(name string) bool {
	return slices.ContainsFunc(c.conditions, func(one condition) bool { return one.field.name == name && one.isPoints() })
}

func (c conjunction) hasDomain(name string) bool {
	_, has := c.domains[name]
	return has
}

// points returns the parts that a field can have.
func (c conjunction) points(name string) [][]byte {
	d, ok := c.domains[name]
	if !ok {
		i := slices.IndexFunc(c.conditions, func(one condition) bool { return one.field.name == name && one.isPoints() })
		d = c.conditions[i].domain()
	}
	parts := make([][]byte, len(d))
	for i, in := range d {
		parts[i] = in.from.part
	}
	return parts
}

// needs returns the fields of the smallest index that supports the conjunction in an order.
func (c conjunction) needs(o order) string {
	var equal order
	var ranged order
	for _, name := range c.fields {
		switch {
		case c.isPoints(name):
			equal = append(equal, field{name: name})
		case o.index(name) < 0:
			ranged = append(ranged, field{name: name})
		}
	}
	sorted := o.without(c.isPoints)
	if len(sorted) > 0 && sorted[0].descending {
		sorted = sorted.reversed() // an index can be read from its end
	}
	return slices.Concat(equal, sorted, ranged).text()
}
