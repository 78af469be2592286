// Package keys reads test/manual/keys/keys.yaml, which describes the keys of belfry's configuration, and makes
// docs/reference/configuration.md of it.
package keys

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// File is test/manual/keys/keys.yaml.
type File struct {
	Since        string // the first release
	Introduction string
	Sections     []*Section
	Reload       map[string]string // by the tag reload of a key: the text about keys that have it
}

// Section is a section of the page: some text, and the keys below a path.
type Section struct {
	Title   string
	At      *string // the path of the keys, in which * is any name; nil: the section has no keys
	As      string  // the path at which examples are put
	Summary string
	Text    string
	After   string    // behind the table
	Needs   yaml.Node // configuration that all examples need
	Keys    keyList
}

// Key describes a key of the configuration.
type Key struct {
	Name      string `yaml:"-"` // as in its section
	Path      string `yaml:"-"` // of the whole key, in which * is any name
	For       string // the value of the key type beside it that has this key
	Type      Type
	Default   string
	DefaultIs string `yaml:"defaultIs"` // a text in place of a value
	Required  bool
	Meaning   string
	Example   yaml.Node
	Needs     yaml.Node // configuration that the example needs
	As        string
	Since     string
}

// Type is the type of a value: a text, or the values that there are.
type Type struct {
	Text   string
	Values []string
}

// UnmarshalYAML accepts a text or a list.
func (t *Type) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.SequenceNode {
		return n.Decode(&t.Values)
	}
	return n.Decode(&t.Text)
}

func (t Type) String() string {
	if t.Values != nil {
		return "`" + strings.Join(t.Values, "`, `") + "`"
	}
	return t.Text
}

type keyList []*Key

// UnmarshalYAML keeps the order of the keys.
func (l *keyList) UnmarshalYAML(n *yaml.Node) error {
	for i := 0; i+1 < len(n.Content); i += 2 {
		k := &Key{Name: n.Content[i].Value}
		text, err := yaml.Marshal(n.Content[i+1]) // a node is not decoded with known fields alone
		if err != nil {
			return err
		}
		d := yaml.NewDecoder(bytes.NewReader(text))
		d.KnownFields(true)
		if err := d.Decode(k); err != nil {
			return fmt.Errorf("line %d: %s: %w", n.Content[i].Line, k.Name, err)
		}
		*l = append(*l, k)
	}
	return nil
}

// Read reads a file such as test/manual/keys/keys.yaml.
func Read(path string) (*File, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	d := yaml.NewDecoder(file)
	d.KnownFields(true)
	var f File
	if err := d.Decode(&f); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	seen := map[string]bool{}
	for _, s := range f.Sections {
		for _, k := range s.Keys {
			if s.At == nil {
				return nil, fmt.Errorf("%s: the section %s has keys, but no path (at)", path, s.Title)
			}
			k.Path = join(*s.At, k.Name)
			if seen[k.Path] {
				return nil, fmt.Errorf("%s: %s is there twice", path, k.Path)
			}
			seen[k.Path] = true
		}
	}
	return &f, nil
}

// Keys returns all keys.
func (f *File) Keys() (all []*Key) {
	for _, s := range f.Sections {
		all = append(all, s.Keys...)
	}
	return all
}

// Find returns the key at a path: of several patterns the one with the fewest names that are open.
func (f *File) Find(path string) *Key {
	var found *Key
	for _, k := range f.Keys() {
		if Match(k.Path, path) && (found == nil || strings.Count(k.Path, "*") < strings.Count(found.Path, "*")) {
			found = k
		}
	}
	return found
}

// FindSection returns the section of the keys below a path, "stores" for instance.
func (f *File) FindSection(path string) *Section {
	for _, s := range f.Sections {
		if s.At != nil && path != "" && strings.TrimSuffix(*s.At, ".*") == path {
			return s
		}
	}
	return nil
}

// Match reports whether a path is one of those that a pattern describes.
func Match(pattern, path string) bool {
	want, got := strings.Split(pattern, "."), strings.Split(path, ".")
	return slices.EqualFunc(want, got, func(w, g string) bool {
		if strings.HasSuffix(w, "[]") != strings.HasSuffix(g, "[]") {
			return false
		}
		w, g = strings.TrimSuffix(w, "[]"), strings.TrimSuffix(g, "[]")
		return w == "*" || w == g
	})
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// links are those of Markdown; a description in an editor has their text alone.
var links = regexp.MustCompile(`\[([^\]]+)\]\([^)]*\)`)

// Description is the meaning of the key, and its default, without links.
func (k *Key) Description() string {
	text := links.ReplaceAllString(k.Meaning, "$1")
	if initial := k.initial(); initial != "" && !strings.HasPrefix(initial, "*required*") {
		text += "\nDefault: " + links.ReplaceAllString(initial, "$1")
	}
	return text
}

func (k *Key) initial() string {
	switch {
	case k.Required:
		return "*required*"
	case k.DefaultIs != "":
		return k.DefaultIs
	case k.Default != "":
		return "`" + k.Default + "`"
	}
	return ""
}

// Example is a configuration with the example of a key.
type Example struct {
	Path string
	Text []byte
}

// Examples returns a configuration for each example: the example at its path, and what it needs.
func (f *File) Examples() ([]Example, error) {
	var all []Example
	for _, s := range f.Sections {
		for _, k := range s.Keys {
			if k.Example.Kind == 0 {
				continue
			}
			path := k.at(s)
			root := map[string]any{}
			for _, needs := range []yaml.Node{s.Needs, k.Needs} {
				more := map[string]any{}
				if needs.Kind != 0 {
					if err := needs.Decode(&more); err != nil {
						return nil, fmt.Errorf("%s: needs: %w", k.Path, err)
					}
				}
				merge(root, more)
			}
			var value any
			if err := k.Example.Decode(&value); err != nil {
				return nil, fmt.Errorf("%s: example: %w", k.Path, err)
			}
			if err := set(root, strings.Split(path, "."), value); err != nil {
				return nil, fmt.Errorf("%s: %w", k.Path, err)
			}
			text, err := yaml.Marshal(root)
			if err != nil {
				return nil, err
			}
			all = append(all, Example{path, text})
		}
	}
	return all, nil
}

// at returns where the example of a key is put.
func (k *Key) at(s *Section) string {
	last := k.Name[strings.LastIndexByte(k.Name, '.')+1:]
	switch {
	case k.As != "" && last == "*":
		return k.As
	case k.As != "":
		return join(k.As, last)
	case s.As != "":
		return join(s.As, k.Name)
	}
	return k.Path
}

// merge adds values to others. A null removes one.
func merge(into, more map[string]any) {
	for key, value := range more {
		old, isMap := into[key].(map[string]any)
		inner, both := value.(map[string]any)
		switch {
		case value == nil:
			delete(into, key)
		case isMap && both:
			merge(old, inner)
		default:
			into[key] = value
		}
	}
}

func set(into map[string]any, path []string, value any) error {
	name, isList := strings.CutSuffix(path[0], "[]")
	switch inner := into[name].(type) {
	case []any:
		if first, ok := inner[0].(map[string]any); isList && ok {
			return set(first, path[1:], value)
		}
		return errors.New(name + " is a list")
	case map[string]any:
		if len(path) > 1 {
			return set(inner, path[1:], value)
		}
	}
	if len(path) == 1 {
		into[name] = value
		return nil
	}
	below := map[string]any{}
	into[name] = below
	return set(below, path[1:], value)
}
