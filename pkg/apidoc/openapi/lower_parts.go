package openapi

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"belfry/internal/ordered"
	"belfry/pkg/apimodel"
)

// alternatives translates anyOf and oneOf. It omits them if the schema has other keywords that determine its type.
func (l *lowering) alternatives(s, out *ordered.Object) *ordered.Object {
	var all []any
	for _, keyword := range []string{"anyOf", "oneOf"} {
		if list, ok := s.Get(keyword).([]any); ok && all == nil {
			all = list
		}
	}
	if all == nil || out.Has("type") || out.Has("properties") || out.Has("enum") || s.Has("allOf") {
		return out
	}
	var each []*ordered.Object
	for _, one := range all {
		lowered := l.value(one)
		is := l.resolve(lowered)
		orNull := is.Get("nullable") == true && !is.Has("type")
		if orNull {
			out.Set("nullable", true)
		}
		inner, nested := is.Get("oneOf").([]any)
		if !nested && !orNull { // otherwise it is only null
			inner = []any{lowered}
		}
		for _, one := range inner {
			if !slices.ContainsFunc(each,
				func(other *ordered.Object) bool { return same(other, one.(*ordered.Object)) }) {
				each = append(each, one.(*ordered.Object))
			}
		}
	}
	switch {
	case len(each) == 0:
	case len(each) == 1 && out.Get("nullable") != true && !out.Has("description"):
		return each[0]
	case len(each) == 1:
		fill(out, l.resolve(each[0]))
	case l.distinct(each):
		l.oneOf(out, each)
	case !slices.ContainsFunc(each, func(one *ordered.Object) bool { return l.resolve(one).Get("type") != "object" }):
		fill(out, l.either(each))
	}
	if len(each) > 0 && !out.Has("type") && !out.Has("oneOf") {
		out.Delete("nullable") // otherwise it would be only null
	}
	return out
}

// oneOf sets alternatives of different types. null is a value of one of them at most.
func (l *lowering) oneOf(out *ordered.Object, each []*ordered.Object) {
	isNullable := func(one *ordered.Object) bool { return l.resolve(one).Get("nullable") == true }
	if first := slices.IndexFunc(each, isNullable); first >= 0 &&
		(out.Get("nullable") == true || slices.ContainsFunc(each[first+1:], isNullable)) {
		out.Set("nullable", true)
		for i, one := range each {
			if isNullable(one) {
				each[i] = l.resolve(one).Clone()
				each[i].Delete("nullable")
			}
		}
	}
	var list []any
	for _, one := range each {
		list = append(list, one)
	}
	out.Set("oneOf", list)
}

// distinct reports whether alternatives have different types: then a value is one of them.
func (l *lowering) distinct(each []*ordered.Object) bool {
	var types []string
	for _, one := range each {
		kind, _ := l.resolve(one).Get("type").(string)
		if kind == "integer" {
			kind = "number"
		}
		if kind == "" || slices.Contains(types, kind) {
			return false
		}
		types = append(types, kind)
	}
	return true
}

// either returns one object schema for several alternatives.
func (l *lowering) either(each []*ordered.Object) *ordered.Object {
	properties, required := &ordered.Object{}, []any(nil)
	for i, one := range each {
		is := l.resolve(one)
		for _, p := range is.Object("properties").Members() {
			if known := properties.Object(p.Name); known != nil && !same(known, p.Value.(*ordered.Object)) {
				p.Value = &ordered.Object{}
			}
			properties.Set(p.Name, p.Value)
		}
		names := namesIn(is.Get("required"))
		if i == 0 {
			required = names
		}
		required = slices.DeleteFunc(slices.Clone(required),
			func(name any) bool { return !slices.Contains(names, name) })
	}
	out := ordered.Of("type", "object")
	if slices.ContainsFunc(each, func(one *ordered.Object) bool { return l.resolve(one).Get("nullable") == true }) {
		out.Set("nullable", true)
	}
	if len(required) > 0 {
		out.Set("required", required)
	}
	out.Set("properties", properties)
	return out
}

// merge adds further schemas to a schema. If they do not add properties, a component stays as it is.
func (l *lowering) merge(out *ordered.Object, all []any) *ordered.Object {
	if first := l.value(all[0]); first.Has("$ref") && out.Len() == 0 && l.narrows(l.resolve(first), all[1:]) {
		return first
	}
	for _, one := range all {
		is, bounded := l.resolve(l.value(one)), out.Clone()
		for _, m := range is.Members() {
			switch known := out.Get(m.Name); {
			case m.Name == "example": // of a part, and may lack what the others require
			// Of another bound.
			case m.Name == "exclusiveMinimum" && bounded.Has("minimum"),
				m.Name == "exclusiveMaximum" && bounded.Has("maximum"):
			case known == nil:
				out.Set(m.Name, m.Value)
			case m.Name == "properties":
				properties := known.(*ordered.Object).Clone()
				for _, p := range m.Value.(*ordered.Object).Members() {
					if before := properties.Object(p.Name); before.Len() == 0 {
						properties.Set(p.Name, p.Value)
					}
				}
				out.Set(m.Name, properties)
			case m.Name == "required":
				names := namesIn(known)
				for _, name := range namesIn(m.Value) {
					if !slices.Contains(names, name) {
						names = append(names, name)
					}
				}
				out.Set(m.Name, names)
			case m.Name == "additionalProperties" && known != m.Value:
				out.Set(m.Name, true)
			}
		}
	}
	return out
}

// narrows reports whether schemas only restrict the values of some properties of an object.
func (l *lowering) narrows(o *ordered.Object, all []any) bool {
	for _, one := range all {
		for _, m := range l.value(one).Members() {
			if m.Name != "properties" && m.Name != "type" && m.Name != "description" {
				return false
			}
			if m.Name == "properties" && slices.ContainsFunc(m.Value.(*ordered.Object).Members(),
				func(p ordered.Member) bool { return !o.Object("properties").Has(p.Name) }) {
				return false
			}
		}
	}
	return true
}

// complete adds the type that the keywords of a schema imply, and omits keywords that do not apply to the type.
func (l *lowering) complete(s *ordered.Object) *ordered.Object {
	if s.Has("$ref") {
		return s
	}
	if values, ok := enumOf(s); ok {
		l.enumerate(s, values)
	}
	if !s.Has("type") && s.Object("properties").Len() > 0 {
		s.Set("type", "object")
	}
	if s.Has("type") {
		s.Delete("oneOf") // of another part of allOf
	}
	switch s.Get("type") {
	case nil:
		s.Delete("format", "pattern", "required", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum",
			"minLength", "maxLength",
			"minItems", "maxItems", "minProperties", "maxProperties", "additionalProperties", "items")
	case "array":
		if !s.Has("items") {
			s.Set("items", &ordered.Object{})
		}
	case "object":
		if !s.Has("properties") && !s.Has("additionalProperties") {
			s.Set("additionalProperties", true)
		}
	}
	return s
}

// placeNull moves nullable, which 3.0 only has beside a type, from schemas without a type to one of their alternatives.
// Without alternatives, a schema without a type allows null anyway.
func placeNull(v any, components *ordered.Object) {
	switch v := v.(type) {
	case []any:
		for _, one := range v {
			placeNull(one, components)
		}
	case *ordered.Object:
		if v.Get("nullable") == true && !v.Has("type") {
			if alternatives, ok := v.Get("oneOf").([]any); ok {
				v.Set("oneOf", withNull(alternatives, components))
			}
			v.Delete("nullable")
		}
		for _, m := range v.Members() {
			properties, _ := m.Value.(*ordered.Object)
			switch m.Name {
			case "example":
			case "properties":
				for _, p := range properties.Members() { // one may be named example
					placeNull(p.Value, components)
				}
			default:
				placeNull(m.Value, components)
			}
		}
	}
}

// withNull makes the first alternative with a type of its own nullable. If all are components, it makes a nullable copy
// of the last one: the first one is the main case, and keeps its name.
func withNull(alternatives []any, components *ordered.Object) []any {
	i := slices.IndexFunc(alternatives, func(one any) bool { return one.(*ordered.Object).Has("type") })
	if i < 0 {
		i = len(alternatives) - 1
	}
	nullable := alternatives[i].(*ordered.Object)
	if ref, ok := nullable.Get("$ref").(string); ok {
		nullable = components.Object(strings.TrimPrefix(ref, apimodel.Component("")))
	}
	nullable = nullable.Clone()
	nullable.Set("nullable", true)
	alternatives = slices.Clone(alternatives)
	alternatives[i] = nullable
	return alternatives
}

func enumOf(s *ordered.Object) ([]any, bool) {
	switch v := s.Get("enum").(type) {
	case []any:
		return v, true
	case nil:
		return nil, false
	case []string:
		var all []any
		for _, one := range v {
			all = append(all, one)
		}
		return all, true
	}
	return nil, false
}

// enumerate keeps an enum whose values are of one type, besides null.
func (l *lowering) enumerate(s *ordered.Object, values []any) {
	var kept []any
	kind := ""
	for _, v := range values {
		is := typeOf(v)
		switch {
		case is == "null":
			s.Set("nullable", true)
			continue
		case kind == "" || kind == is:
			kind = is
		default:
			kind = "several"
		}
		kept = append(kept, v)
	}
	if kind == "string" || kind == "integer" {
		s.Set("type", kind)
		s.Set("enum", kept)
		s.Delete("format")
		return
	}
	// Generators have no constant of another type.
	s.Delete("enum")
	switch {
	case kind == "boolean" || kind == "number":
		s.Set("type", kind)
	case kind != "" && !s.Has("type"):
		s.Delete("nullable") // otherwise it would be only null
	}
}

// typeOf is the type of a value of a document.
func typeOf(v any) string {
	switch v := v.(type) {
	case string:
		return "string"
	case bool:
		return "boolean"
	case int:
		return "integer"
	case json.Number:
		if isWhole(v) {
			return "integer"
		}
		return "number"
	case nil:
		return "null"
	case json.RawMessage:
		if string(v) == "null" {
			return "null"
		}
	case []any:
		return "array"
	}
	return "object"
}

func numberText(v any) string {
	switch v := v.(type) {
	case json.Number:
		return v.String()
	case int:
		return strconv.Itoa(v)
	}
	return ""
}

// fill adds the keywords that a schema lacks.
func fill(out, more *ordered.Object) {
	for _, m := range more.Members() {
		if !out.Has(m.Name) {
			out.Set(m.Name, m.Value)
		}
	}
}

func namesIn(v any) []any {
	switch v := v.(type) {
	case []any:
		return slices.Clone(v)
	case []string:
		var all []any
		for _, one := range v {
			all = append(all, one)
		}
		return all
	}
	return nil
}

// same reports whether two schemas are the same.
func same(a, b *ordered.Object) bool {
	one, err := a.MarshalJSON()
	other, err2 := b.MarshalJSON()
	return err == nil && err2 == nil && bytes.Equal(one, other)
}
