package apimodel

import "belfry/internal/ordered"

// Computed is a property that each write computes by an expression. Type is as in a JSON Schema; "": any.
type Computed struct{ Name, Expression, Type string }

// schema is the schema of a computed property.
func (c Computed) schema() *ordered.Object {
	out := ordered.Of("description", "Computed: `"+c.Expression+"`. Absent if that can't be evaluated.")
	if c.Type != "" {
		out.Set("type", c.Type)
	}
	return out
}
