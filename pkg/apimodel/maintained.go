package apimodel

import (
	"maps"
	"strings"

	"belfry/config"
	"belfry/internal/ordered"
)

// serverProperties returns the properties that no client sets, and those that the schema of the store does not validate
// in replies, which include the owner, because programs set it. The uuid is among both if the schema does not declare
// it, or if parts of the schema may refuse it.
func (s *Store) serverProperties(c *config.Store) (kept, shown map[string]bool) {
	kept = map[string]bool{"created": true, "updated": true}
	for _, a := range s.Arrays {
		kept[a.Name] = true
	}
	for _, property := range c.Reserved {
		kept[property] = true
	}
	for property := range c.Computed {
		kept[property] = true
	}
	for _, property := range s.Files {
		kept[property] = true
	}
	if s.compiled != nil && (!s.compiled.Declares("uuid") || s.compiled.MayRefuse("uuid")) {
		kept["uuid"] = true
	}
	shown = maps.Clone(kept)
	if s.Owner != "" {
		shown[s.Owner] = true
	}
	return kept, shown
}

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

// Uniqueness describes the unique values of a store; "" for none.
func (s *Store) Uniqueness() string {
	var all []string
	for _, properties := range s.Unique {
		one := "`" + strings.Join(properties, "` and `") + "`"
		if len(properties) > 1 {
			one += " together"
		}
		all = append(all, one)
	}
	if all == nil {
		return ""
	}
	return " No two objects have the same " + strings.Join(all, ", or the same ") +
		": 409 with the type `taken`, whose `errors` name them."
}
