package asyncapi

import (
	"slices"
	"strings"

	"belfry/internal/ordered"
	"belfry/pkg/apimodel"
)

// lower translates schemas of draft 2020-12 into draft-07. It omits keywords that the
// older draft can't express, so the translation never rejects a valid value but may
// accept an invalid one. A schema below not, if or oneOf is kept only if its translation
// is exact.
func lower(schemas *ordered.Object) *ordered.Object {
	l := lowering{schemas: schemas, exact: map[string]bool{}}
	out := &ordered.Object{}
	for _, m := range schemas.Members() {
		lowered, _ := l.schema(m.Value.(*ordered.Object))
		out.Set(m.Name, lowered)
	}
	return out
}

// lowerMessages translates the schemas in messages.
func lowerMessages(messages *ordered.Object) *ordered.Object {
	l := lowering{exact: map[string]bool{}}
	out := &ordered.Object{}
	for _, m := range messages.Members() {
		message := m.Value.(*ordered.Object).Clone()
		for _, part := range []string{"headers", "payload"} {
			if o := message.Object(part); o != nil {
				lowered, _ := l.schema(apimodel.Plain(o))
				message.Set(part, lowered)
			}
		}
		out.Set(m.Name, message)
	}
	return out
}

type lowering struct {
	schemas *ordered.Object
	exact   map[string]bool // by reference
}

// schema translates one schema. exact is false when the translation allows more.
func (l *lowering) schema(s *ordered.Object) (_ *ordered.Object, exact bool) {
	if values, ok := s.Get("enum").([]any); ok && len(values) == 0 {
		return ordered.Of("not", &ordered.Object{}), true // validators of draft-07 want at least one value
	}
	out, exact := &ordered.Object{}, true
	for _, m := range s.Members() {
		if !l.keyword(s, m, out) {
			exact = false
		}
	}
	if ref, ok := out.Get("$ref").(string); ok && out.Len() > 1 {
		// A reference hides the keywords beside it.
		out.Delete("$ref")
		all, _ := out.Get("allOf").([]any)
		out.Set("allOf", append([]any{ordered.Of("$ref", ref)}, all...))
	}
	return out, exact
}

func (l *lowering) keyword(s *ordered.Object, m ordered.Member, out *ordered.Object) (exact bool) {
	inner, isSchema := m.Value.(*ordered.Object)
	switch m.Name {
	case "$ref":
		out.Set("$ref", m.Value)
		return l.isExact(m.Value.(string))
	case "unevaluatedProperties", "unevaluatedItems", "minContains", "maxContains", "contentSchema":
		return m.Name == "contentSchema"
	case "contains":
		if s.Has("minContains") || s.Has("maxContains") {
			return false // even zero matches may suffice, or one may be too many
		}
	case "prefixItems":
		return l.list("items", m.Value.([]any), out)
	case "items":
		if s.Has("prefixItems") {
			return l.one("additionalItems", inner, out)
		}
	case "dependentRequired", "dependentSchemas":
		return l.dependencies(inner, out)
	case "properties", "patternProperties":
		return l.each(m.Name, inner, out)
	case "allOf", "anyOf", "oneOf":
		return l.several(m, out)
	case "not", "if", "then", "else":
		return l.condition(s, m, out)
	case "default", "const", "examples", "enum":
		out.Set(m.Name, m.Value)
		return true
	}
	if isSchema {
		return l.one(m.Name, inner, out)
	}
	out.Set(m.Name, m.Value)
	return true
}

func (l *lowering) one(name string, s, out *ordered.Object) bool {
	lowered, exact := l.schema(s)
	out.Set(name, lowered)
	return exact
}

func (l *lowering) list(name string, all []any, out *ordered.Object) (exact bool) {
	exact = true
	var list []any
	for _, one := range all {
		lowered, same := l.schema(one.(*ordered.Object))
		list, exact = append(list, lowered), exact && same
	}
	out.Set(name, list)
	return exact
}

func (l *lowering) each(name string, all, out *ordered.Object) (exact bool) {
	exact = true
	lowered := &ordered.Object{}
	for _, m := range all.Members() {
		if inner, ok := m.Value.(*ordered.Object); ok {
			exact = l.one(m.Name, inner, lowered) && exact
		} else {
			lowered.Set(m.Name, m.Value)
		}
	}
	out.Set(name, lowered)
	return exact
}

// dependencies merges dependentRequired and dependentSchemas.
func (l *lowering) dependencies(all, out *ordered.Object) (exact bool) {
	exact = true
	gathered := out.Object("dependencies").Clone()
	for _, m := range all.Members() {
		dependency := m.Value
		if inner, ok := m.Value.(*ordered.Object); ok {
			lowered, same := l.schema(inner)
			dependency, exact = lowered, exact && same
		}
		if before := gathered.Get(m.Name); before != nil {
			dependency = ordered.Of("allOf", []any{asSchema(before), asSchema(dependency)})
		}
		gathered.Set(m.Name, dependency)
	}
	out.Set("dependencies", gathered)
	return exact
}

func asSchema(dependency any) any {
	if names, ok := dependency.([]any); ok {
		return ordered.Of("required", names)
	}
	return dependency
}

func (l *lowering) several(m ordered.Member, out *ordered.Object) (exact bool) {
	lowered := &ordered.Object{}
	exact = l.list(m.Name, m.Value.([]any), lowered)
	list := lowered.Get(m.Name).([]any)
	all, _ := out.Get("allOf").([]any)
	switch {
	case m.Name == "allOf":
		out.Set("allOf", append(slices.Clip(all), list...))
	case m.Name == "oneOf" && !exact:
		out.Set("allOf", append(slices.Clip(all), ordered.Of("anyOf", list)))
	default:
		out.Set(m.Name, list)
	}
	return exact
}

func (l *lowering) condition(s *ordered.Object, m ordered.Member, out *ordered.Object) bool {
	decides := m.Value
	if m.Name == "then" || m.Name == "else" {
		decides = s.Get("if")
	}
	if test, ok := decides.(*ordered.Object); !ok {
		return true
	} else if _, exact := l.schema(test); !exact {
		return false
	}
	return l.one(m.Name, m.Value.(*ordered.Object), out)
}

// isExact reports whether the translation of a component is exact. A recursive
// component depends on its other parts.
func (l *lowering) isExact(ref string) bool {
	exact, known := l.exact[ref]
	if !known {
		l.exact[ref] = true
		if s := l.schemas.Object(ref[strings.LastIndexByte(ref, '/')+1:]); s != nil {
			_, exact = l.schema(s)
			l.exact[ref] = exact
		}
	}
	return exact
}
