package edit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"belfry/config/yamltext"
	"belfry/internal/ordered"
)

// Value is what a key has: a string; Plain; a list, []Value; or Map.
type Value any

// Plain is a text that is written without quotes where that is possible, such as a number, a duration or true.
type Plain string

// Map has entries in the order in which they are written.
type Map []Member

// Member is an entry of a map.
type Member struct {
	Key   string
	Value Value
}

// Get returns the value of a key.
func (m Map) Get(key string) (Value, bool) {
	for _, each := range m {
		if each.Key == key {
			return each.Value, true
		}
	}
	return nil, false
}

// At returns the value at a path of keys.
func (m Map) At(path ...string) (Value, bool) {
	var v Value = m
	for _, key := range path {
		inner, ok := v.(Map)
		if !ok {
			return nil, false
		}
		if v, ok = inner.Get(key); !ok {
			return nil, false
		}
	}
	return v, true
}

// null is a key without a value.
type null struct{}

// Text is the text of a single value.
func Text(v Value) (text string, single bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case Plain:
		return string(v), true
	default:
		return "", false
	}
}

// Literal escapes a text that is to be taken as it is, and not for a reference to the environment or a file.
func Literal(text string) string { return strings.ReplaceAll(text, "${", "$${") }

// With returns a map with the value at a path of keys replaced; nil removes the key, and what holds it stays, empty.
func (m Map) With(path []string, v Value) Map {
	m = slices.Clone(m)
	at := slices.IndexFunc(m, func(e Member) bool { return e.Key == path[0] })
	if len(path) > 1 {
		inner := Map{}
		if at >= 0 {
			inner, _ = m[at].Value.(Map)
		} else if v == nil {
			return m
		}
		v = inner.With(path[1:], v)
	}
	switch {
	case v == nil && at >= 0:
		return slices.Delete(m, at, at+1)
	case v == nil:
		return m
	case at >= 0:
		m[at].Value = v
		return m
	default:
		return append(m, Member{path[0], v})
	}
}

// same compares values as a configuration reads them: the order of keys and how a text is quoted do not matter.
func same(a, b Value) bool {
	if text, single := Text(a); single {
		other, also := Text(b)
		return also && text == other
	}
	switch a := a.(type) {
	case []Value:
		b, ok := b.([]Value)
		return ok && slices.EqualFunc(a, b, same)
	case Map:
		b, ok := b.(Map)
		if !ok || len(a) != len(b) {
			return false
		}
		return !slices.ContainsFunc(a, func(e Member) bool {
			other, has := b.Get(e.Key)
			return !has || !same(e.Value, other)
		})
	default:
		return a == b
	}
}

// valueOf returns the value of a node.
func valueOf(n *yaml.Node) (Value, error) {
	n = yamltext.Dealias(n)
	switch {
	case n.Style&yaml.TaggedStyle != 0:
		return nil, fmt.Errorf("line %d: a value with a tag (!...)", n.Line)
	case yamltext.IsNull(n):
		return null{}, nil
	case n.Kind == yaml.ScalarNode && n.Style == 0 && n.Tag != "!!str":
		return Plain(n.Value), nil
	case n.Kind == yaml.ScalarNode:
		return n.Value, nil
	case n.Kind == yaml.SequenceNode:
		list := make([]Value, len(n.Content))
		for i, item := range n.Content {
			var err error
			if list[i], err = valueOf(item); err != nil {
				return nil, err
			}
		}
		return list, nil
	}
	m := make(Map, 0, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		if key.Kind != yaml.ScalarNode || key.Tag == "!!merge" || key.Style&yaml.TaggedStyle != 0 {
			return nil, fmt.Errorf("line %d: expected a key before the colon", key.Line)
		}
		if _, twice := m.Get(key.Value); twice {
			return nil, fmt.Errorf("line %d: %s is a duplicate key", key.Line, key.Value)
		}
		v, err := valueOf(n.Content[i+1])
		if err != nil {
			return nil, err
		}
		m = append(m, Member{key.Value, v})
	}
	return m, nil
}

// encodeJSON returns a configuration that is JSON.
func encodeJSON(before []byte, m Map) ([]byte, error) {
	text, err := jsonOf(m).(*ordered.Object).Encode()
	if !bytes.HasSuffix(before, []byte("\n")) {
		text = bytes.TrimSuffix(text, []byte("\n"))
	}
	return text, err
}

// jsonOf returns a value as it is encoded as JSON.
func jsonOf(v Value) any {
	switch v := v.(type) {
	case Map:
		o := ordered.Of()
		for _, e := range v {
			o.Set(e.Key, jsonOf(e.Value))
		}
		return o
	case []Value:
		items := make([]any, len(v))
		for i, item := range v {
			items[i] = jsonOf(item)
		}
		return items
	case null:
		return ordered.Null()
	case Plain:
		if json.Valid([]byte(v)) {
			return json.RawMessage(v)
		}
		return string(v)
	default:
		return v
	}
}
