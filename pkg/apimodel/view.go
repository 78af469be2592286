package apimodel

import (
	"maps"
	"regexp"
	"slices"

	"belfry/config"
	"belfry/internal/ordered"
)

// view rewrites the schema of a store for one representation of its objects. The schema validates stored objects;
// clients receive them without some fields and with additional ones, or send a part of them. A view never rejects a
// valid representation: if a keyword can't be kept, the view accepts more. To that end it rewrites every keyword about
// the object itself (properties, required, allOf, ...), in references too, and leaves the schemas of properties
// unchanged.
type view struct {
	parts map[string]*ordered.Object // what references mean

	// gone are properties that the document does not contain.
	gone map[string]bool
	// free are properties that may occur besides those of the file, with any
	// value: the file's schema does not apply to them.
	free map[string]bool
	// hideable are properties that some clients receive and others don't.
	hideable map[string]bool
	// optional properties may be absent.
	optional map[string]bool
	// partial views show some of an object's properties, each in its full form.
	partial bool
	// patch views are partial, with null for properties to remove.
	patch bool

	followed int // references so far
}

// mostFollowed limits how many references are inlined: a chain of references that
// each have two others grows exponentially.
const mostFollowed = 1000

// apply rewrites a schema. exact is false when the view allows more.
func (v *view) apply(s *ordered.Object) (out *ordered.Object, exact bool) {
	out, exact = &ordered.Object{}, true
	for _, m := range s.Members() {
		if !v.keyword(s, m, out) {
			exact = false
		}
	}
	if !exact {
		// unevaluatedProperties would refuse properties that a relaxed keyword no longer evaluates.
		out.Delete("unevaluatedProperties")
	}
	if closed(out) && len(v.free) > 0 {
		properties := out.Object("properties").Clone()
		for _, name := range slices.Sorted(maps.Keys(v.free)) {
			if !properties.Has(name) {
				properties.Set(name, &ordered.Object{})
			}
		}
		out.Set("properties", properties)
		exact = false
	}
	return out, exact
}

// closed reports whether a schema restricts properties that it does not name.
func closed(s *ordered.Object) bool {
	for _, keyword := range []string{"additionalProperties", "unevaluatedProperties"} {
		if rest := s.Get(keyword); rest != nil && rest != true {
			return true
		}
	}
	return false
}

func (v *view) keyword(s *ordered.Object, m ordered.Member, out *ordered.Object) (exact bool) {
	switch m.Name {
	case "default", "examples", "enum", "const", "minProperties", "maxProperties":
		// They are about complete objects, with properties that other clients do not see.
		return false
	case "$ref":
		return v.reference(s, m.Value.(string), out)
	case "properties":
		return v.properties(m.Value.(*ordered.Object), out)
	case "patternProperties":
		return v.patterns(m.Value.(*ordered.Object), out)
	case "additionalProperties", "unevaluatedProperties":
		return v.rest(m, out)
	case "propertyNames":
		if v.patch || len(v.gone) > 0 { // which it may name
			return false
		}
		require(out, ordered.Of("propertyNames",
			ordered.Of("anyOf", []any{m.Value, ordered.Of("enum", slices.Sorted(maps.Keys(v.free)))})))
		return false
	case "required":
		return v.required(m.Value.([]any), out)
	case "dependentRequired", "dependentSchemas":
		return v.dependents(m, out)
	case "allOf", "anyOf", "oneOf":
		return v.several(m, out)
	case "not", "if", "then", "else":
		return v.condition(s, m, out)
	}
	out.Set(m.Name, m.Value)
	return true
}

// require adds schemas to allOf.
func require(out *ordered.Object, schemas ...any) {
	all, _ := out.Get("allOf").([]any)
	out.Set("allOf", append(slices.Clip(all), schemas...))
}

// reference inlines the schema that a reference refers to.
func (v *view) reference(s *ordered.Object, ref string, out *ordered.Object) bool {
	if v.followed++; v.followed > mostFollowed {
		return false
	}
	inner, exact := v.apply(v.parts[ref])
	for _, m := range s.Members() {
		switch m.Name {
		case "$ref", "title", "description", "deprecated":
		default:
			require(out, inner)
			return exact
		}
	}
	for _, m := range inner.Members() {
		if !s.Has(m.Name) {
			out.Set(m.Name, m.Value)
		}
	}
	return exact
}

func (v *view) properties(all, out *ordered.Object) (exact bool) {
	exact = true
	kept := &ordered.Object{}
	for _, m := range all.Members() {
		if v.gone[m.Name] || v.free[m.Name] {
			exact = false
			continue
		}
		exact = exact && !v.hideable[m.Name]
		kept.Set(m.Name, v.value(m.Value))
	}
	out.Set("properties", kept)
	return exact && !v.patch
}

// value is the schema of the value of a property. In a merge patch an object is a
// patch too, which can be anything, and null removes the property.
func (v *view) value(s any) any {
	inner, ok := s.(*ordered.Object)
	if !v.patch || !ok {
		return s
	}
	if v.mayBeObject(inner, 0) {
		return ordered.Of("title", inner.Get("title"), "description", inner.Get("description"))
	}
	return ordered.Of("anyOf", []any{inner, ordered.Of("type", "null")})
}

// mayBeObject reports whether a schema may accept an object.
func (v *view) mayBeObject(s *ordered.Object, depth int) bool {
	const deepest = 20
	if ref, ok := s.Get("$ref").(string); ok && depth < deepest {
		return v.mayBeObject(v.parts[ref], depth+1)
	}
	switch types := s.Get("type").(type) {
	case string:
		return types == "object"
	case []any:
		return slices.Contains(types, "object")
	}
	if values, ok := s.Get("enum").([]any); ok {
		return slices.ContainsFunc(values, isObject)
	}
	if s.Has("const") {
		return isObject(s.Get("const"))
	}
	return true
}

func isObject(value any) bool { _, ok := value.(*ordered.Object); return ok }

// patterns keeps the schemas of patterns that match no free property, and drops those of properties that the document
// does not contain. The other patterns still determine which properties are additional.
func (v *view) patterns(all, out *ordered.Object) (exact bool) {
	exact = true
	kept := &ordered.Object{}
	for _, m := range all.Members() {
		pattern, err := regexp.Compile(m.Name)
		free := err != nil
		for _, names := range []map[string]bool{v.free, v.gone} {
			for name := range names {
				free = free || pattern.MatchString(name)
			}
		}
		for name := range v.hideable {
			exact = exact && (free || !pattern.MatchString(name))
		}
		if free {
			kept.Set(m.Name, &ordered.Object{})
			exact = false
			continue
		}
		kept.Set(m.Name, v.value(m.Value))
	}
	out.Set("patternProperties", kept)
	return exact && !v.patch
}

// rest is the schema of properties that no other keyword names. In a part of an object these properties are unknown if
// they depend on absent ones.
func (v *view) rest(m ordered.Member, out *ordered.Object) bool {
	if v.partial && m.Name == "unevaluatedProperties" {
		return false
	}
	out.Set(m.Name, v.value(m.Value))
	return !v.patch
}

func (v *view) required(names []any, out *ordered.Object) (exact bool) {
	if v.partial {
		return false
	}
	kept := []any{}
	for _, name := range names {
		if text, _ := name.(string); !v.gone[text] && !v.free[text] && !v.hideable[text] && !v.optional[text] {
			kept = append(kept, name)
		}
	}
	if len(kept) > 0 {
		out.Set("required", kept)
	}
	return len(kept) == len(names)
}

func (v *view) dependents(m ordered.Member, out *ordered.Object) (exact bool) {
	if v.partial {
		return false
	}
	exact = true
	kept := &ordered.Object{}
	for _, d := range m.Value.(*ordered.Object).Members() {
		if v.gone[d.Name] || v.free[d.Name] {
			exact = false
			continue
		}
		if inner, ok := d.Value.(*ordered.Object); ok {
			seen, same := v.apply(inner)
			kept.Set(d.Name, seen)
			exact = exact && same
			continue
		}
		seen := &ordered.Object{}
		exact = v.required(d.Value.([]any), seen) && exact
		if list := seen.Get("required"); list != nil {
			kept.Set(d.Name, list)
		}
	}
	if kept.Len() > 0 {
		out.Set(m.Name, kept)
	}
	return exact
}

func (v *view) several(m ordered.Member, out *ordered.Object) (exact bool) {
	exact = true
	var all, restricting []any
	for _, item := range m.Value.([]any) {
		seen, same := v.apply(item.(*ordered.Object))
		all, exact = append(all, seen), exact && same
		if seen.Len() > 0 {
			restricting = append(restricting, seen)
		}
	}
	// Several alternatives of oneOf may match once each allows more.
	loose := m.Name == "oneOf" && (!exact || v.partial)
	switch {
	case m.Name == "allOf" && len(restricting) > 0:
		require(out, restricting...)
	case m.Name == "allOf", (loose || m.Name == "anyOf") && len(restricting) < len(all):
		// The keyword is empty now.
	case loose:
		require(out, ordered.Of("anyOf", all))
	default:
		out.Set(m.Name, all)
	}
	return exact
}

// condition keeps a schema that decides about other schemas only if it is exact.
func (v *view) condition(s *ordered.Object, m ordered.Member, out *ordered.Object) bool {
	decides := m.Value
	if m.Name == "then" || m.Name == "else" {
		decides = s.Get("if")
	}
	if test, ok := decides.(*ordered.Object); !ok {
		return true
	} else if _, exact := v.apply(test); !exact || v.partial {
		return false
	}
	seen, exact := v.apply(m.Value.(*ordered.Object))
	out.Set(m.Name, seen)
	return exact
}

// expandable returns the keys that name objects of one store, which clients may get.
func (s *Store) expandable(c *config.Config) []Key {
	return slices.DeleteFunc(slices.Clone(s.Keys), func(k Key) bool {
		e := c.Stores[k.Target].Expose
		return e == nil || e.Restrict.Get ||
			slices.ContainsFunc(s.Keys, func(o Key) bool { return o.Name == k.Name && o.Target != k.Target })
	})
}

// expanded is the schema of the expanded objects in an object.
func (s *Store) expanded(k *Contract) *ordered.Object {
	properties := &ordered.Object{}
	for _, key := range s.Expand {
		target := Ref(k.Store(key.Target).ObjectName())
		properties.Set(key.Name, ordered.Of("anyOf", []any{target, ordered.Of("type", "array", "items", target)}))
	}
	return readOnly(nil, ordered.Of("type", "object",
		"description", "With `expand`: the objects that the fields name. Objects that do not exist, or that the "+
			"client may not read, are absent.", "properties", properties))
}
