package apimodel

import (
	"slices"
	"strings"

	"belfry/internal/ordered"
)

// Plain rewrites a schema for code generators. The result accepts the same values:
//
//   - a list of types becomes anyOf with a schema for each, since many generators have one type for a schema. A list of
//     one type and null stays: OpenAPI 3.1 expresses nullable in this way.
//   - an object without keywords gets additionalProperties: true. Otherwise generators make it an object without
//     properties.
//   - default becomes a part of the description. Generators treat a property with a default as always present, in
//     requests too, but in an update an absent property stays as it is.
func Plain(s *ordered.Object) *ordered.Object { return plain(s, true) }

// plain is Plain. alone means that no other schema applies to the same value. Otherwise, as within allOf, it must not
// get further keywords about properties, which would affect an unevaluatedProperties beside it.
func plain(s *ordered.Object, alone bool) *ordered.Object {
	out := &ordered.Object{}
	for _, m := range s.Members() {
		out.Set(m.Name, plainKeyword(m))
	}
	if out.Has("default") {
		describeDefault(out)
	}
	if out.Get("type") == "object" && alone && !slices.ContainsFunc(out.Members(), saysMore) {
		out.Set("additionalProperties", true)
	}
	if types := typesOf(out); len(types) > 0 {
		return split(out, types, alone)
	}
	return out
}

func plainKeyword(m ordered.Member) any {
	switch m.Name {
	case "properties", "patternProperties", "$defs", "dependentSchemas":
		each := &ordered.Object{}
		all, _ := m.Value.(*ordered.Object)
		for _, p := range all.Members() {
			each.Set(p.Name, plainValue(p.Value, m.Name != "dependentSchemas"))
		}
		return each
	case "allOf", "anyOf", "oneOf", "prefixItems":
		var each []any
		for _, one := range list(m.Value) {
			each = append(each, plainValue(one, m.Name == "prefixItems"))
		}
		return each
	case "items", "additionalProperties", "unevaluatedProperties", "unevaluatedItems", "contains", "propertyNames",
		"contentSchema":
		return plainValue(m.Value, true)
	case "not", "if", "then", "else":
		return plainValue(m.Value, false)
	}
	return m.Value
}

func plainValue(v any, alone bool) any {
	if s, ok := v.(*ordered.Object); ok {
		return plain(s, alone)
	}
	return v
}

// describeDefault moves the default of a schema into its description.
func describeDefault(s *ordered.Object) {
	text, err := ordered.Of("v", s.Get("default")).MarshalJSON()
	s.Delete("default")
	if err != nil || len(text) > 200 {
		return
	}
	value := strings.TrimSuffix(strings.TrimPrefix(string(text), `{"v":`), "}")
	if value == "" {
		return
	}
	description, _ := s.Get("description").(string)
	s.Set("description", strings.TrimSpace(description+" Default: `"+value+"`."))
}

// saysMore reports whether a keyword is about the properties of an object.
func saysMore(m ordered.Member) bool {
	switch m.Name {
	case "type", "title", "description", "readOnly", "writeOnly", "deprecated", "examples", "minProperties",
		"maxProperties", "required":
		return false
	case "properties":
		return m.Value.(*ordered.Object).Len() > 0
	}
	return true
}

// typesOf returns the types of a schema with several types, without null; nil for another schema.
func typesOf(s *ordered.Object) []string {
	var all []string
	switch types := s.Get("type").(type) {
	case []string:
		all = types
	case []any:
		for _, t := range types {
			if name, ok := t.(string); ok {
				all = append(all, name)
			}
		}
	}
	if slices.Contains(all, "number") {
		all = slices.DeleteFunc(slices.Clone(all), func(name string) bool { return name == "integer" })
	}
	switch {
	case len(all) == 1:
		s.Set("type", all[0])
	case len(all) == 2 && slices.Contains(all, "null"):
		s.Set("type", all)
	default:
		return all
	}
	return nil
}

// keywordsOf are the keywords that apply to values of one type only.
func keywordsOf(kind string) []string {
	switch kind {
	case "string":
		return []string{"minLength", "maxLength", "pattern", "format", "contentEncoding", "contentMediaType",
			"contentSchema"}
	case "number", "integer":
		return []string{"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}
	case "array":
		return []string{"prefixItems", "items", "contains", "minContains", "maxContains", "minItems", "maxItems",
			"uniqueItems"}
	case "object":
		return []string{"properties", "patternProperties", "additionalProperties", "propertyNames", "required",
			"minProperties", "maxProperties", "dependentRequired", "dependentSchemas"}
	}
	return nil
}

// split makes a schema for each type of a schema, with the keywords for that type.
func split(s *ordered.Object, types []string, alone bool) *ordered.Object {
	rest := s.Clone()
	rest.Delete("type")
	// Only keywords of the same schema know which properties and items were evaluated.
	whole := s.Has("unevaluatedProperties") || s.Has("unevaluatedItems")
	var kinds []any
	for _, kind := range types {
		one := ordered.Of("type", kind)
		for _, name := range keywordsOf(kind) {
			if s.Has(name) && !whole {
				one.Set(name, s.Get(name))
				rest.Delete(name)
			}
		}
		if kind == "object" && alone && !whole && one.Len() == 1 {
			one.Set("additionalProperties", true)
		}
		kinds = append(kinds, one)
	}
	if rest.Has("anyOf") {
		require(rest, ordered.Of("anyOf", rest.Get("anyOf")))
	}
	rest.Set("anyOf", kinds)
	return rest
}

// PlainIn rewrites all schemas of a part of a document, which are the members named schema.
func PlainIn(v any) any {
	switch v := v.(type) {
	case *ordered.Object:
		out := &ordered.Object{}
		for _, m := range v.Members() {
			schema, ok := m.Value.(*ordered.Object)
			switch {
			case m.Name == "schema" && ok:
				out.Set(m.Name, Plain(schema))
			case m.Name == "example" || m.Name == "examples":
				out.Set(m.Name, m.Value)
			default:
				out.Set(m.Name, PlainIn(m.Value))
			}
		}
		return out
	case []any:
		all := make([]any, len(v))
		for i, one := range v {
			all[i] = PlainIn(one)
		}
		return all
	}
	return v
}
