package query

import "slices"

// conjunction is conditions that an object meets together.
type conjunction struct {
	conditions []condition
	fields     []string          // of the conditions, each once
	domains    map[string]domain // of a field; not of elements
}

func newConjunctions(all [][]condition) []conjunction {
	cs := make([]conjunction, len(all))
	for i, conditions := range all {
		cs[i] = newConjunction(conditions)
	}
	return cs
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
	return slices.ContainsFunc(c.conditions,
		func(one condition) bool { return one.field.name == name && one.isPoints() })
}

func (c conjunction) hasDomain(name string) bool {
	_, has := c.domains[name]
	return has
}

// points returns the parts that a field can have.
func (c conjunction) points(name string) [][]byte {
	if d, ok := c.domains[name]; ok {
		return d.points()
	}
	i := c.element(name, make([]bool, len(c.conditions)))
	return c.conditions[i].domain().points()
}

// element returns the first condition that is not held yet and gives the elements of an array one of a few parts; -1
// for none.
func (c conjunction) element(name string, held []bool) int {
	for i, one := range c.conditions {
		if one.field.name == name && one.isPoints() && !held[i] {
			return i
		}
	}
	return -1
}

// markHeld marks the conditions on a field as held. One key holds one condition on the elements of an array.
func (c conjunction) markHeld(held []bool, f field) {
	if f.elements {
		if i := c.element(f.name, held); i >= 0 {
			held[i] = true
		}
		return
	}
	for i, one := range c.conditions {
		held[i] = held[i] || one.field.name == f.name
	}
}

// residual returns the conditions that objects with matching keys may not meet.
func (c conjunction) residual(held []bool) (all []condition) {
	for i, one := range c.conditions {
		if !held[i] || slices.ContainsFunc(one.literals, func(literal []byte) bool { return !isExact(literal) }) {
			all = append(all, one)
		}
	}
	return all
}

// neededIndex returns the fields of the smallest index that supports the conjunction in an order.
func (c conjunction) neededIndex(o order) order {
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
	return slices.Concat(equal, sorted, ranged)
}
