// Package computed compiles the computed properties of a configuration, with what it and the schemas of its stores say
// about the properties that their expressions read.
package computed

import (
	"encoding/json"
	"strings"

	"belfry/config"
	"belfry/pkg/store/policy"
	"belfry/pkg/store/schema"
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
		if m, ok := s.Map[store]; ok {
			all = append(all, m.Target)
		}
	}
	return all
}

// known is what schema and configuration say about the properties of a store.
func known(c *config.Config, s *config.Store) policy.Known {
	known := policy.Known{Arrays: MappedArrays(c, s.Name)}
	known.Types, known.Closed = schemaTypes(s.Schema)
	for _, name := range []string{"uuid", "created", "updated", s.Owner} {
		known.Types[name] = "string"
	}
	for _, name := range s.Reserved {
		known.Types[name] = "boolean"
	}
	for _, m := range s.Map {
		if _, declared := known.Types[m.Key]; !declared {
			known.Types[m.Key] = ""
		}
	}
	for _, b := range c.Binaries {
		known.Arrays = append(known.Arrays, b.Map[s.Name]...)
	}
	return known
}

// schemaTypes returns the types of the properties that a JSON Schema declares, and whether an object is meant to have no
// others. What it says by other keywords than these is not known. A file that can't be read is reported elsewhere.
func schemaTypes(file string) (types map[string]string, closed bool) {
	types = map[string]string{}
	if file == "" {
		return types, false
	}
	data, err := schema.Read(file)
	if err != nil {
		return types, false
	}
	var root map[string]json.RawMessage
	var properties map[string]struct {
		Type json.RawMessage `json:"type"`
	}
	if json.Unmarshal(data, &root) != nil || json.Unmarshal(root["properties"], &properties) != nil {
		return types, false
	}
	for name, property := range properties {
		one := ""
		_ = json.Unmarshal(property.Type, &one) // several types are any
		types[name] = one
	}
	for _, keyword := range []string{"$ref", "$dynamicRef", "$recursiveRef", "allOf", "anyOf", "oneOf", "if", "dependentSchemas", "patternProperties"} {
		if root[keyword] != nil {
			return types, false
		}
	}
	more := strings.TrimSpace(string(root["additionalProperties"]))
	return types, more == "" || more == "false"
}
