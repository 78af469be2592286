package decode

import (
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"belfry/config/yamltext"
)

// Section is one mapping of the file. The known keys are those that were read; rejectUnknown reports all others.
type Section struct {
	doc      *Document
	path     string // "" is the root
	name     string // the key that has it
	set      bool   // it is in the file
	optional bool   // without keys, it may lack those that it requires
	suffix   string // completes "unknown key", for instance "of a mailer of type smtp"
	keys     []string
	values   map[string]*yaml.Node
	known    []string
	instead  map[string]string // common wrong keys, and the paths of the right ones
}

var plainKey = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// Join makes the path of a key; a key with special characters is quoted.
func Join(path, key string) string {
	if !plainKey.MatchString(key) {
		key = quote(key)
	}
	return within(path, key)
}

// within makes the path of a path within another one.
func within(path, inner string) string {
	if path == "" || inner == "" {
		return path + inner
	}
	return path + "." + inner
}

// newSection reads a mapping. A node that is absent or null is an empty one.
func newSection(d *Document, path string, n *yaml.Node) *Section {
	s := &Section{doc: d, path: path, set: n != nil, values: map[string]*yaml.Node{}}
	n = yamltext.Dealias(n)
	if yamltext.IsNull(n) {
		return s
	}
	if n.Kind != yaml.MappingNode || n.Style&yaml.TaggedStyle != 0 {
		d.Problem(path, "expected keys with values, not %s", describe(n))
		return s
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		s.add(n.Content[i], n.Content[i+1])
	}
	return s
}

func (s *Section) add(keyNode, value *yaml.Node) {
	key := keyNode.Value
	path := Join(s.path, key)
	switch first, twice := s.doc.positions[path]; {
	case keyNode.Kind != yaml.ScalarNode:
		s.doc.problemIn(s.path, keyNode, "expected a key before the colon, not %s", describe(keyNode))
	case keyNode.Tag == "!!merge":
		s.doc.problemIn(s.path, keyNode,
			"merge keys (<<) are not supported; write the keys out, or use an alias for a whole value")
	case keyNode.Style&yaml.TaggedStyle != 0:
		s.doc.problemIn(s.path, keyNode, "a key cannot have a tag")
	case twice && s.values[key] != nil:
		s.doc.problemIn(path, keyNode, "is a duplicate key, first in line %d", first.line)
	default:
		s.doc.positions[path] = position{keyNode.Line, keyNode.Column}
		s.keys = append(s.keys, key)
		s.values[key] = value
	}
}

// Name is the key of the section.
func (s *Section) Name() string { return s.name }

// Keys are those that the file has in the section, in their order.
func (s *Section) Keys() []string { return s.keys }

// IsSet reports whether the section is in the file.
func (s *Section) IsSet() bool { return s.set }

// Has reports whether a key is set.
func (s *Section) Has(key string) bool { return s.values[key] != nil }

// Valid reports whether a key, by its path in the section, is set to a valid value.
func (s *Section) Valid(path string) bool { return s.doc.Valid(within(s.path, path)) }

// Fine reports whether keys are not set, or set to valid values.
func (s *Section) Fine(keys ...string) bool {
	return !slices.ContainsFunc(keys, func(key string) bool { return s.Has(key) && !s.Valid(key) })
}

// Value returns the value of a key without a field, by its path in the section; nil if it is not set, or invalid.
func (s *Section) Value(path string) any { return s.doc.loose[within(s.path, path)] }

// Problem reports a problem with a key of the section, set or missing, by its path in the section; "" is the section
// itself.
func (s *Section) Problem(path, format string, args ...any) {
	s.doc.Problem(within(s.path, path), format, args...)
}

// afterwards adds what sets a default that depends on other keys: when all are read, and whenever these change.
func (s *Section) afterwards(set func()) { s.doc.later = append(s.doc.later, set) }

// rejectUnknown reports the keys that were not read.
func (s *Section) rejectUnknown() {
	for _, key := range s.keys {
		if slices.Contains(s.known, key) {
			continue
		}
		what := "unknown key"
		if s.suffix != "" {
			what += " " + s.suffix
		}
		advice := Suggest(key, s.known)
		if meant := s.instead[key]; meant != "" {
			advice = "did you mean " + meant + "?"
		}
		s.Problem(Join("", key), "%s; %s", what, advice)
	}
}

// wordOf returns the key that has the value of a section of a type, if the file has that value instead of keys; else
// nil.
func (s *Section) wordOf(name string, of reflect.Type) *Key {
	word, n := layoutOf(of, "").word, yamltext.Dealias(s.values[name])
	if word == nil || yamltext.IsNull(n) {
		return nil
	}
	if n.Kind == yaml.ScalarNode || n.Kind == yaml.SequenceNode && word.typ.Kind() == reflect.Slice {
		return word
	}
	return nil
}

// Child returns the section under a key.
func (s *Section) Child(key string) *Section {
	s.known = append(s.known, key)
	c := newSection(s.doc, Join(s.path, key), s.values[key])
	c.name = key
	return c
}

// text is a single value after substitution, and the path of its key.
type text struct{ path, value string }

// scalar returns the single value under a key; ok is false when the key is
// not set or its value is invalid, which is then reported.
func (s *Section) scalar(key string) (v text, ok bool) {
	s.known = append(s.known, key)
	n := s.values[key]
	if n == nil {
		return text{}, false
	}
	return s.doc.scalar(Join(s.path, key), n)
}

// describe returns a node's kind, never its content.
func describe(n *yaml.Node) string {
	switch {
	case n.Style&yaml.TaggedStyle != 0:
		return "a value with a tag (!...)"
	case n.Kind == yaml.MappingNode:
		return "keys with values"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case n.Kind == yaml.AliasNode:
		return "an alias"
	case yamltext.IsNull(n):
		return "nothing"
	default:
		return "a single value"
	}
}

// quote shows a text in one short line.
func quote(text string) string {
	const longest = 60
	if len(text) > longest {
		return strconv.Quote(strings.ToValidUTF8(text[:longest], "")) + "..."
	}
	return strconv.Quote(text)
}
