package config

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// section is one mapping of the file. A reader reads every key it supports and then
// calls rejectUnknown: the known keys are exactly those that were read. A key that
// is not set leaves its variable unchanged, so variables hold their defaults
// before.
type section struct {
	doc         *document
	path        string // "" is the root
	suffix      string // completes "unknown key", for instance "of a mailer of type smtp"
	keys        []string
	values      map[string]*yaml.Node
	known       []string
	suggestions map[string]string // common wrong keys, and the paths of the right ones
}

var plainKey = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// join makes the path of a key; a key with special characters is quoted.
func join(path, key string) string {
	if !plainKey.MatchString(key) {
		key = quote(key)
	}
	if path == "" {
		return key
	}
	return path + "." + key
}

// newSection reads a mapping. A node that is absent or null is an empty one.
func newSection(d *document, path string, n *yaml.Node) *section {
	s := &section{doc: d, path: path, values: map[string]*yaml.Node{}}
	if d.recorder != nil {
		d.recorder.section(path)
		s.keys = []string{anyKey}
		return s
	}
	n = dealias(n)
	if isNull(n) {
		return s
	}
	if n.Kind != yaml.MappingNode || n.Style&yaml.TaggedStyle != 0 {
		d.problem(path, "expected keys with values, not %s", describe(n))
		return s
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		s.add(n.Content[i], n.Content[i+1])
	}
	return s
}

func (s *section) add(keyNode, value *yaml.Node) {
	key := keyNode.Value
	path := join(s.path, key)
	switch first, twice := s.doc.positions[path]; {
	case keyNode.Kind != yaml.ScalarNode:
		s.doc.problemIn(s.path, keyNode, "expected a key before the colon, not %s", describe(keyNode))
	case keyNode.Tag == "!!merge":
		s.doc.problemIn(s.path, keyNode, "merge keys (<<) are not supported; write the keys out, or use an alias for a whole value")
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

func (s *section) has(key string) bool { return s.values[key] != nil }

// require reports that a key without a default is missing.
func (s *section) require(key, expected string) {
	if s.doc.recorder != nil {
		s.doc.recorder.require(s.path, key)
	} else if !s.has(key) {
		s.problem(key, "is missing; expected %s", expected)
	}
}

// problem reports a problem with a key of the section, set or missing.
func (s *section) problem(key, format string, args ...any) {
	s.doc.problem(join(s.path, key), format, args...)
}

// rejectUnknown reports the keys that were not read.
func (s *section) rejectUnknown() {
	if s.doc.recorder != nil {
		return
	}
	for _, key := range s.keys {
		if slices.Contains(s.known, key) {
			continue
		}
		what := "unknown key"
		if s.suffix != "" {
			what += " " + s.suffix
		}
		if meant := s.suggestions[key]; meant != "" {
			s.problem(key, "%s; did you mean %s?", what, meant)
			continue
		}
		s.problem(key, "%s; %s", what, suggest(key, s.known))
	}
}

// isScalar reports whether a key is set to a single value that is not null.
func (s *section) isScalar(key string) bool {
	if s.doc.recorder != nil {
		return s.doc.recorder.choose(join(s.path, key)+" is scalar", "false", "true") == "true"
	}
	n := dealias(s.values[key])
	return !isNull(n) && n.Kind == yaml.ScalarNode
}

// section returns the mapping under a key.
func (s *section) section(key string) *section {
	s.known = append(s.known, key)
	s.doc.recorder.key(s.path, key)
	return newSection(s.doc, join(s.path, key), s.values[key])
}

// named calls read for each entry of the mapping under a key, in the order of
// the file. Its keys are names chosen by the user and are
// validated.
func (s *section) named(key string, read func(name string, s *section)) {
	entries := s.section(key)
	if s.doc.recorder != nil {
		read(anyKey, entries.section(anyKey))
		return
	}
	first := map[string]string{}
	for _, name := range entries.keys {
		if _, err := parseName(name); err != nil {
			entries.problem(name, "%v", err)
			continue
		}
		folded := strings.ToLower(name)
		if other, taken := first[folded]; taken {
			entries.problem(name, "differs from %s only in case", other)
		} else {
			first[folded] = name
		}
		read(name, newSection(s.doc, join(entries.path, name), entries.values[name]))
	}
}

// scalar is a single value after substitution.
type scalar struct{ path, text string }

// scalar returns the single value under a key; ok is false when the key is
// not set or its value is invalid, which is then reported.
func (s *section) scalar(key string) (v scalar, ok bool) {
	s.known = append(s.known, key)
	n := s.values[key]
	if n == nil {
		return scalar{}, false
	}
	return s.doc.scalar(join(s.path, key), n)
}

// decode reads the value under a key. The error of parse says what is expected; the
// value is quoted after it unless it is secret. The result is false when the key
// is set and invalid.
func decode[T any](s *section, key string, into *T, parse func(text string) (T, error)) bool {
	if r := s.doc.recorder; r != nil {
		if chosen, err := parse(recordValue(r, s.path, key, *into, parse)); err == nil && key == "type" {
			*into = chosen
		}
		return true
	}
	v, ok := s.scalar(key)
	if !ok {
		return !s.has(key)
	}
	got, ok := convert(s.doc, v, parse)
	if ok {
		*into = got
	}
	return ok
}

// convert parses one value and reports a problem if it is invalid.
func convert[T any](d *document, v scalar, parse func(text string) (T, error)) (T, bool) {
	if d.recorder != nil {
		var none T
		d.recorder.values[v.path] = valueOf(none, parse)
		return none, false
	}
	got, err := parse(v.text)
	if err != nil {
		d.problem(v.path, "%v%s", err, d.butGot(v.path, v.text))
	}
	return got, err == nil
}

func dealias(n *yaml.Node) *yaml.Node {
	for n != nil && n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}

func isNull(n *yaml.Node) bool {
	return n == nil || n.Kind == yaml.ScalarNode && n.Tag == "!!null"
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
	case isNull(n):
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

// names returns the sorted keys of a map.
func names[T any](m map[string]T) []string {
	return slices.Sorted(maps.Keys(m))
}
