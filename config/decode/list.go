package decode

import (
	"fmt"
	"iter"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"belfry/config/yamltext"

	"belfry/config/value"
)

// maxItems limits the length of a list.
const maxItems = 200

// items yields the items of the list under a key, each with its path.
func (s *Section) items(key, example string) iter.Seq2[string, *yaml.Node] {
	s.known = append(s.known, key)
	n := yamltext.Dealias(s.values[key])
	return func(yield func(string, *yaml.Node) bool) {
		path := Join(s.path, key)
		switch {
		case n == nil:
			return
		case n.Kind != yaml.SequenceNode || n.Style&yaml.TaggedStyle != 0:
			s.doc.refuse(path, "expected a list, such as %s, not %s", example, describe(n))
			return
		case len(n.Content) > maxItems:
			s.doc.refuse(path, "expected at most %d items", maxItems)
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

// readSections reads a list of sections.
func (s *Section) readSections(key string, into reflect.Value) {
	for path, item := range s.items(key, "[{name: a}]") {
		one := reflect.New(into.Type().Elem())
		newSection(s.doc, path, item).fill(one.Elem(), "")
		into.Set(reflect.Append(into, one.Elem()))
	}
}

// readList reads a list of single values, without those that are invalid.
func (s *Section) readList(k *Key, name string, into reflect.Value) {
	var items []text
	if k.list == "" {
		items = s.list(name)
	} else {
		items = s.words(name)
	}
	s.doc.decodeList(k, items, into)
}

func (d *Document) decodeList(k *Key, items []text, into reflect.Value) {
	unique := k.list == "names"
	if unique && len(items) > maxItems {
		d.refuse(items[0].path, "expected at most %d names", maxItems)
		return
	}
	for _, item := range items {
		one := reflect.New(into.Type().Elem()).Elem()
		switch ok := d.decode(k, item, one); {
		case ok && unique && contains(into, one):
			d.refuse(item.path, "%s is listed twice", d.Display(item.path, one.String()))
		case ok:
			into.Set(reflect.Append(into, one))
		}
	}
}

func contains(list, one reflect.Value) bool {
	for i := range list.Len() {
		if list.Index(i).Equal(one) {
			return true
		}
	}
	return false
}

// readLists reads a list of texts with several names each. One that is invalid is an empty list.
func (s *Section) readLists(k *Key, key string, into reflect.Value) {
	names := *k
	names.list = "names"
	for path, item := range s.items(key, "[a, b]") {
		one := reflect.New(into.Type().Elem()).Elem()
		if v, ok := s.doc.scalar(path, item); ok {
			s.doc.decodeList(&names, v.split(), one)
		}
		into.Set(reflect.Append(into, one))
	}
}

// list returns the single values of the list under a key, without those
// that are invalid.
func (s *Section) list(key string) []text {
	var all []text
	for path, item := range s.items(key, "[a, b]") {
		if v, ok := s.doc.scalar(path, item); ok {
			all = append(all, v)
		}
	}
	return all
}

// words returns the items of a list or of a comma-separated string.
func (s *Section) words(key string) []text {
	if n := yamltext.Dealias(s.values[key]); n == nil || n.Kind != yaml.ScalarNode {
		return s.list(key)
	}
	v, ok := s.scalar(key)
	if !ok {
		return nil
	}
	return v.split()
}

// split returns the words of a comma-separated string; nil for an empty one.
func (v text) split() []text {
	if strings.TrimSpace(v.value) == "" {
		return nil
	}
	var all []text
	for word := range strings.SplitSeq(v.value, ",") {
		all = append(all, text{v.path, strings.TrimSpace(word)})
	}
	return all
}

// readMap reads a map whose entries are the keys of a section. Its keys are fixed or up to the author of the file.
func (s *Section) readMap(k *Key, into reflect.Value) {
	if into.IsNil() && (k.isSection(into.Type().Elem()) || len(s.keys) > 0 || len(k.fixed) > 0) {
		into.Set(reflect.MakeMap(into.Type()))
	}
	for _, name := range k.fixed {
		if one := s.readEntry(k, name, into); one.Kind() != reflect.Slice || one.Len() > 0 {
			into.SetMapIndex(reflect.ValueOf(name), one)
		}
	}
	if len(k.fixed) > 0 {
		return
	}
	seen := map[string]string{}
	for _, name := range slices.Clone(s.keys) {
		ok, read := s.checkName(k.names, name, seen)
		if !read {
			continue
		}
		if one := s.readEntry(k, name, into); ok {
			into.SetMapIndex(reflect.ValueOf(name), one)
		}
	}
}

// readEntry reads an entry of a map, which begins with the map's default.
func (s *Section) readEntry(k *Key, name string, of reflect.Value) reflect.Value {
	one := reflect.New(of.Type().Elem()).Elem()
	if initial := of.MapIndex(reflect.ValueOf(name)); initial.IsValid() {
		one.Set(initial)
	}
	switch {
	case one.Kind() == reflect.Pointer:
		one.Set(reflect.New(one.Type().Elem()))
		s.Child(name).fill(one.Elem(), "")
	case k.isSection(one.Type()) && s.wordOf(name, one.Type()) != nil:
		s.readSection(k, name, one)
	case k.isSection(one.Type()):
		s.Child(name).fill(one, "")
	default:
		s.readValue(k, name, one)
	}
	return one
}

// checkName reports the problem of a key of a map, and whether its value is read nevertheless. seen are those before
// it.
func (s *Section) checkName(kind, name string, seen map[string]string) (ok, read bool) {
	switch kind {
	case "any":
		return true, true
	case "property":
		_, err := value.OwnProperty(name)
		if err != nil {
			s.Problem(Join("", name), "%v", err)
		}
		return err == nil, true
	}
	if _, err := value.Name(name); err != nil {
		s.Problem(Join("", name), "%v", err)
		return false, false
	}
	folded := strings.ToLower(name)
	if other, taken := seen[folded]; taken {
		s.Problem(Join("", name), "differs from %s only in case", other)
	} else {
		seen[folded] = name
	}
	return true, true
}
