package form

import (
	"encoding/json"
	"slices"
	"strings"

	"belfry/internal/ordered"
	"belfry/pkg/object"
)

// maxSteps is how many references, and parts of allOf, are followed for one field.
const maxSteps = 32

// resolved is a schema with its references, parts and alternatives in one, for a value.
type resolved struct {
	*ordered.Object
	path     []*ordered.Object // the targets of references around the field, to find recursion
	nullable bool
}

// resolver resolves the schema of one field.
type resolver struct {
	root  *ordered.Object
	steps int
}

// resolve returns the schema for a value; false: no field can express it.
func (s *Schema) resolve(schema any, path []*ordered.Object, value []byte) (resolved, bool) {
	r := &resolver{root: s.root}
	return r.resolve(schema, path, value)
}

func (r *resolver) resolve(schema any, path []*ordered.Object, value []byte) (resolved, bool) {
	o, ok := schema.(*ordered.Object)
	if r.steps++; !ok || r.steps > maxSteps {
		return resolved{}, false
	}
	is := resolved{Object: o, path: path}
	if ref, ok := o.Get("$ref").(string); ok {
		target := r.target(ref)
		if target == nil || slices.Contains(path, target) {
			return is, false
		}
		inner, ok := r.resolve(target, append(slices.Clip(path), target), value)
		if !ok {
			return is, false
		}
		is = resolved{Object: combine(without(o, "$ref"), inner.Object), path: inner.path, nullable: inner.nullable}
	} else if o.Has("$dynamicRef") || o.Has("$recursiveRef") {
		return is, false
	}
	if parts, ok := is.Get("allOf").([]any); ok {
		all, path := without(is.Object, "allOf"), is.path
		for _, part := range parts {
			if p, ok := r.resolve(part, is.path, value); ok {
				all, is.nullable = combine(all, p.Object), is.nullable || p.nullable
				path = append(slices.Clip(path), p.path[len(is.path):]...)
			}
		}
		is.Object, is.path = all, path
	}
	for _, keyword := range []string{"anyOf", "oneOf"} {
		if parts, ok := is.Get(keyword).([]any); ok {
			return r.choose(is, keyword, parts, value)
		}
	}
	return is, true
}

// choose resolves a schema with alternatives: the one that the value fits, or the first one.
func (r *resolver) choose(is resolved, keyword string, parts []any, value []byte) (resolved, bool) {
	outer := without(is.Object, keyword)
	if outer.Has("properties") && !slices.ContainsFunc(parts, describes) {
		return resolved{outer, is.path, is.nullable}, true // they restrict combinations of the properties
	}
	var all []resolved
	objects := 0
	for _, part := range parts {
		p, ok := r.resolve(part, is.path, value)
		if !ok {
			return is, false
		}
		if types, null := typesOf(p.Object); null && len(types) == 0 {
			is.nullable = true
			continue
		} else if slices.Contains(types, "object") {
			objects++
		}
		all = append(all, p)
	}
	if objects > 1 || len(all) == 0 {
		return is, false
	}
	if options := constants(all); options != nil {
		outer.Set("enum", options)
		return resolved{outer, is.path, is.nullable}, true
	}
	chosen := all[0]
	if i := slices.IndexFunc(all, func(p resolved) bool { return fits(p.Object, value) }); i >= 0 {
		chosen = all[i]
	} else if i := slices.IndexFunc(all, func(p resolved) bool {
		types, _ := typesOf(p.Object)
		return slices.Contains(types, "array")
	}); i >= 0 && value == nil {
		chosen = all[i] // one or several: a list can be of one
	}
	return resolved{combine(outer, chosen.Object), chosen.path, is.nullable || chosen.nullable}, true
}

// describes reports whether a part of anyOf or oneOf has properties of its own.
func describes(part any) bool {
	o, ok := part.(*ordered.Object)
	return !ok || slices.ContainsFunc([]string{"$ref", "properties", "type", "enum", "const"}, o.Has)
}

// titledConst is a value of an enumeration with a title.
type titledConst struct {
	value any
	title string
}

// constants returns the options of alternatives that are one value each; nil for other ones.
func constants(all []resolved) []any {
	var options []any
	for _, p := range all {
		if !p.Has("const") {
			return nil
		}
		title, _ := p.Get("title").(string)
		options = append(options, titledConst{p.Get("const"), title})
	}
	return options
}

// target returns what a reference within the document is to; nil for none.
func (r *resolver) target(ref string) *ordered.Object {
	pointer, ok := strings.CutPrefix(ref, "#")
	if !ok || pointer != "" && pointer[0] != '/' {
		return nil
	}
	at := r.root
	for pointer != "" {
		token, rest, more := strings.Cut(pointer[1:], "/")
		if pointer = ""; more {
			pointer = "/" + rest
		}
		if at = at.Object(object.UnescapeToken(token)); at == nil {
			return nil
		}
	}
	return at
}

func without(o *ordered.Object, keywords ...string) *ordered.Object {
	c := o.Clone()
	c.Delete(keywords...)
	return c
}

// combine returns a schema that says what two say: properties and required of both, and the other keywords of the
// first that has them.
func combine(first, second *ordered.Object) *ordered.Object {
	c := first.Clone()
	for _, m := range second.Members() {
		switch {
		case !c.Has(m.Name):
			c.Set(m.Name, m.Value)
		case m.Name == "properties":
			both := &ordered.Object{}
			for _, o := range []*ordered.Object{first.Object(m.Name), second.Object(m.Name)} {
				for _, p := range o.Members() {
					if !both.Has(p.Name) {
						both.Set(p.Name, p.Value)
					}
				}
			}
			c.Set(m.Name, both)
		case m.Name == "required":
			one, _ := first.Get(m.Name).([]any)
			other, _ := second.Get(m.Name).([]any)
			c.Set(m.Name, slices.Concat(one, other))
		}
	}
	return c
}

// types are names of types of JSON Schema, without null.
type types []string

// typesOf returns the types that a schema allows; without any it is silent about them. null is one of its own.
func typesOf(o *ordered.Object) (all types, null bool) {
	add := func(name any) {
		switch name {
		case "null":
			null = true
		case "string", "number", "integer", "boolean", "object", "array":
			all = append(all, name.(string))
		}
	}
	switch t := o.Get("type").(type) {
	case string:
		add(t)
	case []any:
		for _, name := range t {
			add(name)
		}
	default:
		for _, of := range []struct{ kind, keywords string }{
			{"object", "properties additionalProperties required patternProperties"}, {"array", "items prefixItems"},
			{"string", "minLength maxLength pattern format"}, {"number", "minimum maximum multipleOf"},
		} {
			if slices.ContainsFunc(strings.Fields(of.keywords), o.Has) {
				return types{of.kind}, false
			}
		}
	}
	return all, null
}

// allow reports whether a value has one of the types.
func (t types) allow(value []byte) bool {
	kind := kindOf(value)
	return slices.Contains(t, kind) || kind == "number" && slices.Contains(t, "integer")
}

// fits reports whether a value is of a type of a schema, and one of its enumeration.
func fits(o *ordered.Object, value []byte) bool {
	if value == nil {
		return false
	}
	options, listed := optionsOf(o)
	if listed {
		return slices.ContainsFunc(options, func(op Option) bool { return op.Value == string(value) })
	}
	all, _ := typesOf(o)
	return all.allow(value)
}

// optionsOf returns the values of enum or const; false where there is neither.
func optionsOf(o *ordered.Object) (options []Option, listed bool) {
	values, listed := o.Get("enum").([]any)
	if o.Has("const") {
		values, listed = []any{o.Get("const")}, true
	}
	for _, v := range values {
		op := Option{}
		if c, ok := v.(titledConst); ok {
			v, op.Label = c.value, c.title
		}
		op.Value = encode(v)
		if op.Label == "" {
			op.Label = plain([]byte(op.Value))
		}
		options = append(options, op)
	}
	return options, listed
}

// encode returns a value of a schema as JSON.
func encode(v any) string {
	if text, ok := v.(string); ok {
		return string(object.AppendString(nil, text))
	}
	if o, ok := v.(*ordered.Object); ok {
		text, _ := o.Encode()
		return string(text)
	}
	text, err := json.Marshal(v)
	if err != nil {
		return "null"
	}
	return string(text)
}

// plain returns a scalar as people read it.
func plain(value []byte) string {
	if text, ok := object.Text(value); ok {
		return text
	}
	return string(value)
}

// kindOf returns the type of a compact JSON value.
func kindOf(value []byte) string {
	switch value[0] {
	case '{':
		return "object"
	case '[':
		return "array"
	case '"':
		return "string"
	case 't', 'f':
		return "boolean"
	case 'n':
		return "null"
	default:
		return "number"
	}
}
