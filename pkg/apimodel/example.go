package apimodel

import (
	"context"
	"encoding/json"
	"math"
	"math/big"
	"strings"

	"belfry/internal/ordered"
)

// Values of examples.
const (
	ExampleUUID     = "0199d3b2-7c1f-7e4a-9b57-2f6f0c9e4d10"
	ExampleTime     = "2026-11-21T04:05:06.000007Z"
	ExampleRevision = "1795234506000007"
)

// exemplify adds an example input and the object that results from it, if the schema
// accepts them. hidden are the properties that the object is shown without.
func (s *Store) exemplify(hidden map[string]bool) {
	for _, all := range []bool{true, false} {
		m := generator{parts: s.parts, all: all}
		input, ok := m.value(s.Input, 0)
		o, isObject := input.(*ordered.Object)
		if !ok || !isObject {
			continue
		}
		o.Delete("uuid")
		if s.accepts(o) {
			s.NewExample = o
			s.Example = ordered.Of("uuid", ExampleUUID)
			for _, m := range o.Members() {
				if !hidden[m.Name] {
					s.Example.Set(m.Name, m.Value)
				}
			}
			if s.Owner != "" {
				s.Example.Set(s.Owner, ExampleUUID)
			}
			s.Example.Set("created", ExampleTime)
			s.Example.Set("updated", ExampleTime)
			return
		}
	}
}

// accepts reports whether the schema of the store accepts an object.
func (s *Store) accepts(o *ordered.Object) bool {
	if s.compiled == nil {
		return true
	}
	whole := o.Clone()
	if !s.maintained["uuid"] {
		whole.Set("uuid", ExampleUUID)
	}
	for name := range s.maintained {
		whole.Delete(name)
	}
	text, err := whole.MarshalJSON()
	return err == nil &&
		s.compiled.ValidatePart(context.Background(), text, func(name string) bool { return s.maintained[name] }) == nil
}

// generator generates values for schemas.
type generator struct {
	parts map[string]*ordered.Object
	all   bool // properties that are not required as well
}

// deepest is the maximum depth of examples of recursive schemas.
const deepest = 6

// make returns a value for a schema, and false when it finds none.
func (m generator) value(schema *ordered.Object, depth int) (any, bool) {
	if depth > deepest {
		return nil, false
	}
	if given := list(schema.Get("examples")); len(given) > 0 {
		return given[0], true
	}
	for _, keyword := range []string{"default", "const"} {
		if schema.Has(keyword) {
			return schema.Get(keyword), true
		}
	}
	if values := list(schema.Get("enum")); len(values) > 0 {
		return values[0], true
	}
	if ref, ok := schema.Get("$ref").(string); ok {
		return m.value(m.parts[ref], depth+1)
	}
	switch typeOf(schema) {
	case "object":
		return m.object(schema, depth)
	case "array":
		return m.array(schema, depth)
	case "string":
		return text(schema)
	case "integer", "number":
		return number(schema)
	case "boolean":
		return true, true
	}
	for _, keyword := range []string{"anyOf", "oneOf", "allOf"} {
		for _, one := range list(schema.Get(keyword)) {
			if v, ok := m.value(one.(*ordered.Object), depth+1); ok {
				return v, true
			}
		}
	}
	return nil, false
}

// typeOf returns the first type of a schema, or the type that its keywords imply.
func typeOf(schema *ordered.Object) string {
	switch t := schema.Get("type").(type) {
	case string:
		return t
	case []any:
		if len(t) > 0 {
			first, _ := t[0].(string)
			return first
		}
	}
	if schema.Has("properties") {
		return "object"
	}
	return ""
}

func (m generator) object(schema *ordered.Object, depth int) (any, bool) {
	required := map[any]bool{}
	for _, name := range list(schema.Get("required")) {
		required[name] = true
	}
	o := &ordered.Object{}
	for _, p := range schema.Object("properties").Members() {
		inner, ok := p.Value.(*ordered.Object)
		if !ok || inner.Get("readOnly") == true || !m.all && !required[p.Name] {
			continue
		}
		if v, ok := m.value(inner, depth+1); ok {
			o.Set(p.Name, v)
		} else if required[p.Name] {
			return nil, false
		}
	}
	return o, true
}

func (m generator) array(schema *ordered.Object, depth int) (any, bool) {
	items := []any{}
	for _, first := range list(schema.Get("prefixItems")) {
		v, ok := m.value(first.(*ordered.Object), depth+1)
		if !ok {
			return nil, false
		}
		items = append(items, v)
	}
	if v, ok := m.value(schema.Object("items"), depth+1); ok && len(items) == 0 {
		items = append(items, v)
	}
	return items, true
}

// formatted are strings of all formats, in ASCII.
var formatted = map[string]string{
	"date": "2026-11-21", "date-time": "2026-11-21T04:05:06Z", "time": "04:05:06Z", "duration": "PT15M",
	"email": "ada@example.com", "idn-email": "ada@example.com", "hostname": "example.com",
	"idn-hostname": "example.com", "ipv4": "192.0.2.1", "ipv6": "2001:db8::1",
	"uri": "https://example.com/", "iri": "https://example.com/", "uri-reference": "/books/emma",
	"iri-reference": "/books/emma", "uri-template": "/books/{title}",
	"json-pointer": "/title", "relative-json-pointer": "1/title", "regex": "^[a-z]+$", "uuid": ExampleUUID,
}

// text generates a string. It does not generate strings for patterns.
func text(schema *ordered.Object) (any, bool) {
	if schema.Has("pattern") {
		return nil, false
	}
	format, _ := schema.Get("format").(string)
	least, most := whole(schema.Get("minLength"), 0), whole(schema.Get("maxLength"), math.MaxInt)
	if s := formatted[format]; s != "" {
		return s, len(s) >= least && len(s) <= most // with another length it would violate the format
	}
	s := "text"
	for len(s) < least {
		s += " text"
	}
	return s[:min(len(s), most)], true
}

func whole(v any, otherwise int) int {
	n, ok := v.(json.Number)
	if !ok {
		return otherwise
	}
	i, err := n.Int64()
	if err != nil || i < 0 || i > 1000 {
		return otherwise
	}
	return int(i)
}

// number generates a number: the minimum, or 1.
func number(schema *ordered.Object) (any, bool) {
	for _, keyword := range []string{"multipleOf", "minimum", "maximum"} {
		n, ok := schema.Get(keyword).(json.Number)
		if r, valid := new(big.Rat).SetString(n.String()); ok && valid {
			one := big.NewRat(1, 1)
			if keyword == "minimum" && r.Cmp(one) <= 0 || keyword == "maximum" && r.Cmp(one) >= 0 {
				continue
			}
			if strings.ContainsAny(n.String(), ".eE") && schema.Get("type") == "integer" {
				return nil, false
			}
			return n, true
		}
	}
	return ordered.Number("1"), true
}
