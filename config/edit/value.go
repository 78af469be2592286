package edit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
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

// with returns a map with the value at a path replaced; nil removes the key, and what holds it stays, empty.
func with(m Map, path []string, v Value) Map {
	m = slices.Clone(m)
	at := slices.IndexFunc(m, func(e Member) bool { return e.Key == path[0] })
	if len(path) > 1 {
		inner := Map{}
		if at >= 0 {
			inner, _ = m[at].Value.(Map)
		} else if v == nil {
			return m
		}
		v = with(inner, path[1:], v)
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
	n = dealias(n)
	switch {
	case n.Style&yaml.TaggedStyle != 0:
		return nil, fmt.Errorf("line %d: a value with a tag (!...)", n.Line)
	case isNull(n):
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

func dealias(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}

func isNull(n *yaml.Node) bool { return n == nil || n.Kind == yaml.ScalarNode && n.Tag == "!!null" }

// encodeJSON returns a configuration that is JSON.
func encodeJSON(before []byte, m Map) []byte {
	var compact, out bytes.Buffer
	writeJSON(&compact, m)
	_ = json.Indent(&out, compact.Bytes(), "", "  ")
	if bytes.HasSuffix(before, []byte("\n")) {
		out.WriteByte('\n')
	}
	return out.Bytes()
}

func writeJSON(out *bytes.Buffer, v Value) {
	separator := byte(0)
	next := func() {
		if separator != 0 {
			out.WriteByte(separator)
		}
		separator = ','
	}
	switch v := v.(type) {
	case Map:
		out.WriteByte('{')
		for _, e := range v {
			next()
			writeJSON(out, e.Key)
			out.WriteByte(':')
			writeJSON(out, e.Value)
		}
		out.WriteByte('}')
	case []Value:
		out.WriteByte('[')
		for _, item := range v {
			next()
			writeJSON(out, item)
		}
		out.WriteByte(']')
	case null:
		out.WriteString("null")
	default:
		text, _ := Text(v)
		if _, plain := v.(Plain); plain && json.Valid([]byte(text)) {
			out.WriteString(text)
			return
		}
		encoder := json.NewEncoder(out)
		encoder.SetEscapeHTML(false)
		_ = encoder.Encode(text) // a string and a writer that can't fail
		out.Truncate(out.Len() - 1)
	}
}
