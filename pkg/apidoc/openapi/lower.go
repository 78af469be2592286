package openapi

import (
	"strconv"
	"strings"

	"belfry/internal/ordered"
	"belfry/pkg/apimodel"
	"belfry/pkg/op"
)

// Lowered returns the document in OpenAPI 3.0, for code generators that do not support 3.1. It omits keywords that 3.0
// lacks, and simplifies schemas for which such generators have no type: alternatives of objects become one object with
// the properties of all. A property is required only if all alternatives require it.
//
// So the document may allow more than the other one. It allows less only in one case: the schema of a property in one
// alternative applies to all.
func Lowered(set *op.Set) ([]byte, error) {
	d := whole(set)
	l := lowering{schemas: d.Object("components").Object("schemas"), lowered: map[string]*ordered.Object{}}
	out := &ordered.Object{}
	for _, m := range d.Members() {
		switch m.Name {
		case "openapi":
			m.Value = "3.0.3"
		case "info":
			info := m.Value.(*ordered.Object).Clone()
			info.Delete("summary")
			m.Value = info
		case "components":
			components := l.part(m.Value).(*ordered.Object)
			schemas := &ordered.Object{}
			for _, s := range l.schemas.Members() {
				schemas.Set(s.Name, l.component(s.Name))
			}
			components.Set("schemas", schemas)
			m.Value = apimodel.Reachable(components, "#/components/", l.part(d.Object("paths")))
			m.Value.(*ordered.Object).Set("securitySchemes", components.Get("securitySchemes"))
		default:
			m.Value = l.part(m.Value)
		}
		out.Set(m.Name, m.Value)
	}
	placeNull(out, out.Object("components").Object("schemas"))
	return out.Encode()
}

// lowering translates the schemas of a document.
type lowering struct {
	schemas *ordered.Object
	lowered map[string]*ordered.Object // components
	within  int                        // how deep it is in components that are inlined
}

// deepestInlined limits the inlining of components that refer to themselves.
const deepestInlined = 8

// part translates the schemas of a part of a document that is not a schema itself.
func (l *lowering) part(v any) any {
	switch v := v.(type) {
	case *ordered.Object:
		out := &ordered.Object{}
		for _, m := range v.Members() {
			switch schema, ok := m.Value.(*ordered.Object); {
			case m.Name == "schema" && ok:
				out.Set(m.Name, l.schema(schema))
			case m.Name == "example", m.Name == "schemas":
				out.Set(m.Name, m.Value)
			case m.Name == "content":
				out.Set(m.Name, l.part(forPrograms(schema)))
			default:
				out.Set(m.Name, l.part(m.Value))
			}
		}
		return out
	case []any:
		all := make([]any, len(v))
		for i, one := range v {
			all[i] = l.part(one)
		}
		return all
	}
	return v
}

// forPrograms omits media types for browsers and streams from a content that also has JSON, and all other types from a
// content with raw bytes. Generators make a type of each, and some fail for a form with arbitrary fields.
func forPrograms(content *ordered.Object) *ordered.Object {
	out := content.Clone()
	if out.Has(op.JSONType) {
		out.Delete(op.NDJSONType, op.FormType, op.HTMLType, op.MergePatchType)
	}
	if out.Has(op.BytesType) {
		out = op.Content(op.BytesType, op.Raw())
	}
	return out
}

// component translates a component, once.
func (l *lowering) component(name string) *ordered.Object {
	if s, known := l.lowered[name]; known {
		return s
	}
	// During the translation, for a component that refers to itself.
	l.lowered[name] = ordered.Of("description", "See "+name+".")
	s := l.schema(l.schemas.Object(name))
	l.lowered[name] = s
	return s
}

// resolve returns the component that a translated schema refers to, or the schema itself.
func (l *lowering) resolve(s *ordered.Object) *ordered.Object {
	ref, ok := s.Get("$ref").(string)
	if !ok {
		return s
	}
	if l.within >= deepestInlined {
		return &ordered.Object{}
	}
	l.within++
	defer func() { l.within-- }()
	return l.resolve(l.component(strings.TrimPrefix(ref, apimodel.Component(""))))
}

// schema translates a schema.
func (l *lowering) schema(s *ordered.Object) *ordered.Object {
	if ref := s.Get("$ref"); ref != nil {
		if s.Has("allOf") || s.Has("properties") || s.Has("anyOf") {
			rest := s.Clone()
			rest.Delete("$ref")
			return l.merge(ordered.Of(), []any{ordered.Of("$ref", ref), rest})
		}
		if is := l.component(strings.TrimPrefix(ref.(string), apimodel.Component(""))); is.Has("$ref") {
			return is
		}
		return ordered.Of("$ref", ref) // 3.0 ignores the keywords beside it
	}
	out := &ordered.Object{}
	for _, m := range s.Members() {
		l.keyword(s, m, out)
	}
	out = l.alternatives(s, out)
	if all, _ := s.Get("allOf").([]any); all != nil {
		out = l.merge(out, all)
	}
	return l.complete(out)
}

// value translates a schema. true and false become schemas that allow anything.
func (l *lowering) value(v any) *ordered.Object {
	if s, ok := v.(*ordered.Object); ok {
		return l.schema(s)
	}
	return &ordered.Object{}
}

func (l *lowering) keyword(s *ordered.Object, m ordered.Member, out *ordered.Object) {
	switch m.Name {
	case "title", "description", "deprecated", "readOnly", "writeOnly", "format", "pattern", "minLength", "maxLength",
		"minItems", "maxItems", "minProperties", "maxProperties", "required", "enum":
		out.Set(m.Name, m.Value)
	case "minimum", "maximum":
		if !s.Has("exclusive" + strings.ToUpper(m.Name[:1]) + m.Name[1:]) { // 3.0 has only one of both
			out.Set(m.Name, m.Value)
		}
	case "type":
		setType(m.Value, out)
	case "const":
		out.Set("enum", []any{m.Value})
	case "exclusiveMinimum":
		out.Set("minimum", m.Value)
		out.Set(m.Name, true)
	case "exclusiveMaximum":
		out.Set("maximum", m.Value)
		out.Set(m.Name, true)
	case "multipleOf":
		if isWhole(m.Value) {
			out.Set(m.Name, m.Value)
		}
	case "examples":
		if all, _ := m.Value.([]any); len(all) > 0 {
			out.Set("example", all[0])
		}
	case "properties":
		properties := &ordered.Object{}
		for _, p := range m.Value.(*ordered.Object).Members() {
			properties.Set(p.Name, l.value(p.Value))
		}
		out.Set(m.Name, properties)
	case "additionalProperties":
		switch inner, ok := m.Value.(*ordered.Object); {
		case s.Has("patternProperties"):
			out.Set(m.Name, true)
		case ok:
			out.Set(m.Name, l.schema(inner))
		default:
			out.Set(m.Name, m.Value)
		}
	case "items":
		if !s.Has("prefixItems") {
			out.Set(m.Name, l.value(m.Value))
		}
	}
}

// setType sets the type of a schema: one type, perhaps with null.
func setType(value any, out *ordered.Object) {
	var all []any
	switch v := value.(type) {
	case string:
		all = []any{v}
	case []string:
		for _, one := range v {
			all = append(all, one)
		}
	case []any:
		all = v
	}
	for _, one := range all {
		if one == "null" {
			out.Set("nullable", true)
		} else {
			out.Set("type", one)
		}
	}
}

func isWhole(v any) bool {
	_, err := strconv.Atoi(numberText(v))
	return err == nil
}
