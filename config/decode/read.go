// Package decode reads a YAML file into structs whose fields declare their keys by tags (see Key). The same tags make
// the JSON Schema of the file, and say what a reload does with each difference between two files.
//
// Reading is strict. An unknown key, a value that the format of its key does not accept, a missing key and a duplicate
// are problems. All of them are reported at once, each with file, line, column, key and what is expected. No problem
// quotes a value that is secret or came from the environment.
//
// Rules between keys are code: a struct that has them is a Validator.
package decode

import (
	"path/filepath"
	"reflect"
	"strings"
)

// Defaulter is a struct with defaults that no tag has.
type Defaulter interface{ SetDefaults() }

// Validator is a struct with rules between its keys, and defaults that depend on them. Validate is called once all of
// them are read.
type Validator interface{ Validate(s *Section) }

// Special is a type with the tag special, which reads the section under a key by itself.
type Special interface {
	Read(s *Section)
	Schema(b *Schema, path string) Fragment
}

// Fill reads the keys of a section into a struct, without some of them.
func (s *Section) Fill(into any, without string) { s.fill(reflect.ValueOf(into).Elem(), without) }

// fill reads the keys of a section into a struct, in the order of its fields, and then has the rules between them
// checked.
func (s *Section) fill(into reflect.Value, without string) {
	setDefaults(into)
	l, kind, known := layoutOf(into.Type(), without), "", true
	s.instead = l.instead
	var variant reflect.Value
	for i := range l.keys {
		k := &l.keys[i]
		if k.variant != kind && k.variant != "" {
			continue
		}
		valid := s.readKey(k, into)
		if k.Name == "type" && k.of != "" {
			if known = valid; !known {
				continue
			}
			kind = into.FieldByIndex(k.index).String()
			s.suffix = "of " + k.of + " of type " + kind
			variant = newVariant(into, kind)
		}
	}
	if !known {
		return // nobody knows which other keys it has
	}
	s.rejectUnknown()
	s.validate(variant)
	s.validate(into.Addr())
}

func setDefaults(of reflect.Value) {
	if d, ok := of.Addr().Interface().(Defaulter); ok {
		d.SetDefaults()
	}
}

func (s *Section) validate(of reflect.Value) {
	if !of.IsValid() {
		return
	}
	if v, ok := of.Interface().(Validator); ok {
		v.Validate(s)
	}
}

// readKey reads a key into its field. The result is false when the key is set and invalid.
func (s *Section) readKey(k *Key, into reflect.Value) bool {
	if k.secret {
		mark(s.doc.secret, Join(s.path, k.Name))
	}
	if k.Required != "" && !s.Has(k.Name) && (s.set && !s.optional || len(s.keys) > 0) {
		s.Problem(k.Name, "is missing; expected %s", k.Required)
	}
	if k.index == nil {
		return s.ReadLoose(k)
	}
	field := into.FieldByIndex(k.index)
	s.setInitial(k, field)
	return s.readValue(k, k.Name, field)
}

// ReadLoose reads a key without a field: its value is that of Value.
func (s *Section) ReadLoose(k *Key) bool {
	v, ok := s.scalar(k.Name)
	if !ok {
		return !s.Has(k.Name)
	}
	got, ok := s.doc.convert(k, v)
	if ok {
		s.doc.loose[v.path] = got
	}
	return ok
}

// setInitial sets the default of a key, and adds a path to those of the configuration.
func (s *Section) setInitial(k *Key, field reflect.Value) {
	variable, rest, depends := strings.Cut(strings.TrimPrefix(k.initial, "{"), "}")
	if k.initial != "" && !depends {
		field.Set(reflect.ValueOf(k.parseInitial(filepath.Dir(s.doc.file))).Convert(field.Type()))
	}
	if k.Format.Use == 0 {
		return
	}
	at, path := Join(s.path, k.Name), field.Addr().Interface().(*string)
	s.doc.paths = append(s.doc.paths, func() Path { return Path{at, *path, k.Format.Use} })
	if depends && !s.Has(k.Name) {
		rest = filepath.FromSlash(strings.ReplaceAll(rest, "{name}", s.name))
		s.afterwards(func() { *path = filepath.Join(s.doc.variables[variable], rest) })
	}
}

// readValue reads the value of a key of a section: a section, a map, a list or a single value, according to its type.
func (s *Section) readValue(k *Key, name string, into reflect.Value) bool {
	switch kind := into.Kind(); {
	case k.special:
		into.Addr().Interface().(Special).Read(s.Child(name))
	case kind == reflect.Pointer:
		if one := s.Child(name); one.set {
			into.Set(reflect.New(into.Type().Elem()))
			one.fill(into.Elem(), k.without)
		}
	case k.isSection(into.Type()):
		s.readSection(k, name, into)
	case kind == reflect.Map && name == "*":
		s.readMap(k, into)
	case kind == reflect.Map:
		entries := s.Child(name)
		entries.readMap(k, into)
		if len(k.fixed) > 0 {
			entries.suffix = "of " + name
			entries.rejectUnknown()
		}
	case kind == reflect.Slice && k.isSection(into.Type().Elem()):
		s.readSections(name, into)
	case kind == reflect.Slice && into.Type().Elem().Kind() == reflect.Slice:
		s.readLists(k, name, into)
	case kind == reflect.Slice:
		s.readList(k, name, into)
	default:
		v, ok := s.scalar(name)
		if !ok {
			return !s.Has(name)
		}
		return s.doc.decode(k, v, into)
	}
	return true
}

// readSection reads a section, or the word that is short for one.
func (s *Section) readSection(k *Key, name string, into reflect.Value) {
	if word := s.wordOf(name, into.Type()); word != nil {
		s.readValue(word, name, into.FieldByIndex(word.index))
		return
	}
	one := s.Child(name)
	one.optional = true
	one.fill(into, k.without)
}
