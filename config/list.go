package config

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// maxItems limits the length of a list.
const maxItems = 200

// list returns the single values of the list under a key, without those
// that are invalid.
func (s *section) list(key string) []scalar {
	var all []scalar
	for path, item := range s.items(key, "[a, b]") {
		if s.doc.recorder != nil {
			all = append(all, scalar{path: path})
		} else if v, ok := s.doc.scalar(path, item); ok {
			all = append(all, v)
		}
	}
	return all
}

// sections returns the mappings of the list under a key.
func (s *section) sections(key string) []*section {
	var all []*section
	for path, item := range s.items(key, "[{name: a}]") {
		all = append(all, newSection(s.doc, path, item))
	}
	return all
}

// items yields the items of the list under a key, each with its path.
func (s *section) items(key, example string) iter.Seq2[string, *yaml.Node] {
	s.known = append(s.known, key)
	n := dealias(s.values[key])
	return func(yield func(string, *yaml.Node) bool) {
		if s.doc.recorder != nil {
			s.doc.recorder.key(s.path, key)
			yield(s.doc.recorder.list(join(s.path, key)), nil)
			return
		}
		if n == nil {
			return
		}
		path := join(s.path, key)
		if n.Kind != yaml.SequenceNode || n.Style&yaml.TaggedStyle != 0 {
			s.doc.problem(path, "expected a list, such as %s, not %s", example, describe(n))
			return
		}
		if len(n.Content) > maxItems {
			s.doc.problem(path, "expected at most %d items", maxItems)
			return
		}
		for i, item := range n.Content {
			at := fmt.Sprintf("%s[%d]", path, i)
			s.doc.positions[at] = position{item.Line, item.Column}
			if !yield(at, item) {
				return
			}
		}
	}
}

// words returns the items of a list or of a comma-separated string.
func (s *section) words(key string) []scalar {
	if s.doc.recorder != nil {
		s.doc.recorder.words[join(s.path, key)] = true
	}
	if n := dealias(s.values[key]); n == nil || n.Kind != yaml.ScalarNode {
		return s.list(key)
	}
	v, ok := s.scalar(key)
	if !ok {
		return nil
	}
	return v.split()
}

// split returns the words of a comma-separated string; an empty one has none.
func (v scalar) split() []scalar {
	if strings.TrimSpace(v.text) == "" {
		return nil
	}
	var all []scalar
	for word := range strings.SplitSeq(v.text, ",") {
		all = append(all, scalar{v.path, strings.TrimSpace(word)})
	}
	return all
}

// properties reads the words under a key as names without duplicates.
func (s *section) properties(key string, parse func(string) (string, error)) []string {
	return s.doc.properties(s.words(key), parse)
}

func (d *document) properties(words []scalar, parse func(string) (string, error)) []string {
	if len(words) > maxItems {
		d.problem(words[0].path, "expected at most %d names", maxItems)
		return nil
	}
	var all []string
	for _, v := range words {
		name, ok := convert(d, v, parse)
		switch {
		case ok && slices.Contains(all, name):
			d.problem(v.path, "%s is listed twice", d.display(v.path, name))
		case ok:
			all = append(all, name)
		}
	}
	return all
}
