package decode

import (
	"cmp"
	"reflect"
	"slices"
	"strings"
	"sync"

	"belfry/config/value"
)

// Key is a key of a section. A struct declares its keys by fields with tags:
//
//	key       the name in the file. A field without it has a value that rules compute, or is a struct that is embedded with its keys.
//	          A blank field has a key whose value Section.Value returns. With "*", the entries of a map are keys of the section
//	is        the format of values, and its parameters: see value.FormatOf. By default that of the Go type: flag, or text
//	default   the value of a key that is not in the file. A path can begin with a {variable} of Document.Derive, and have {name}, the
//	          key of the section
//	required  the expected value, for the message that the key is missing
//	secret    messages hide the value. Names such as password do so themselves
//	list      of a list: words can be a comma-separated text as well, names are words without duplicates
//	names     of a map: what its keys are, name (by default), property or any
//	keys      of a map: all its keys
//	of        of the key type, whose value decides which variant of keys there is: what the section is
//	variant   the value of the key type for which the field, a pointer to a struct, is set and has its keys in the section
//	without   keys that the section does not have, of those of the struct
//	word      a section that is no mapping is the value of this field: a single value, or a list
//	special   the type of the field is a Special
//	reload    what a reload does with a changed value: see Policy. By default as the section; of a variant, for its keys
//	presence  what a reload does if a section is added or removed. By default as with a changed value
//	instead   of a blank field without a key: common wrong keys, and the paths of the right ones
type Key struct {
	Name     string
	Required string
	Format   value.Format // of single values, or of the items of a list

	initial, list, names, of, variant, without, reload, presence string

	fixed           []string // the keys of a map
	secret, special bool
	index           []int        // of the field; nil if it is blank
	typ             reflect.Type // of the field
}

// LooseKey is a key that no field declares.
func LooseKey(name, is, initial string) *Key {
	return &Key{Name: name, initial: initial, Format: value.FormatOf(is)}
}

// layout is the declaration of a struct.
type layout struct {
	keys    []Key
	word    *Key
	instead map[string]string
}

var layouts sync.Map // of layout by layoutID

type layoutID struct {
	of      reflect.Type
	without string
}

// layoutOf returns the keys that a struct declares, without some.
func layoutOf(t reflect.Type, without string) *layout {
	id := layoutID{t, without}
	if known, ok := layouts.Load(id); ok {
		return known.(*layout)
	}
	l := &layout{instead: map[string]string{}}
	l.add(t, nil, "", strings.Fields(without))
	layouts.Store(id, l)
	return l
}

// add adds the keys of a struct, which is at an index in the outermost one.
func (l *layout) add(t reflect.Type, index []int, variant string, without []string) {
	for i := range t.NumField() {
		f := t.Field(i)
		at := append(slices.Clone(index), i)
		_, isKey := f.Tag.Lookup("key")
		_, isWord := f.Tag.Lookup("word")
		switch of := f.Tag.Get("variant"); {
		case isKey && slices.Contains(without, f.Tag.Get("key")):
		case isKey || isWord:
			k := newKey(f, at, variant)
			if isKey {
				l.keys = append(l.keys, k)
			}
			if isWord {
				l.word = &k
			}
		case of != "":
			first := len(l.keys)
			l.add(f.Type.Elem(), at, of, without)
			for j := range l.keys[first:] {
				k := &l.keys[first+j]
				k.reload = cmp.Or(k.reload, f.Tag.Get("reload"))
			}
		case f.Anonymous:
			l.add(f.Type, at, variant, append(strings.Fields(f.Tag.Get("without")), without...))
		default:
			for _, pair := range strings.Fields(f.Tag.Get("instead")) {
				wrong, right, _ := strings.Cut(pair, "=")
				l.instead[wrong] = right
			}
		}
	}
}

func newKey(f reflect.StructField, index []int, variant string) Key {
	tag := f.Tag.Get
	k := Key{
		Name: tag("key"), Required: tag("required"), initial: tag("default"), list: tag("list"), names: tag("names"),
		of: tag("of"), variant: variant,
		without: tag("without"), reload: tag("reload"), presence: tag("presence"), fixed: strings.Fields(tag("keys")),
		secret: tag("secret") != "", special: tag("special") != "", typ: f.Type,
	}
	if f.Name != "_" {
		k.index = index
	}
	switch kind := valueType(f.Type).Kind(); {
	case tag("is") != "":
		k.Format = value.FormatOf(tag("is"))
	case kind == reflect.String:
		k.Format = value.FormatOf("text")
	case kind == reflect.Bool:
		k.Format = value.FormatOf("flag")
	}
	return k
}

// valueType is the type of the single values of a list, a map, or a list in a map.
func valueType(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
		t = t.Elem()
	}
	return t
}

// isSection reports whether values of a type are sections: structs without a format.
func (k *Key) isSection(t reflect.Type) bool {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t.Kind() == reflect.Struct && k.Format.Parse == nil
}

// parseInitial returns the default in the tag of a key; nil without one, or if it depends on other values.
func (k *Key) parseInitial(folder string) any {
	if k.initial == "" || strings.HasPrefix(k.initial, "{") {
		return nil
	}
	initial, err := k.Format.Parse(folder, k.initial)
	if err != nil {
		panic("decode: the default of " + k.Name + ": " + err.Error())
	}
	return initial
}

// newVariant sets the field of a struct for a value of the key type, and returns it; invalid without such a field.
func newVariant(of reflect.Value, kind string) reflect.Value {
	for i := range of.NumField() {
		if of.Type().Field(i).Tag.Get("variant") == kind && kind != "" {
			of.Field(i).Set(reflect.New(of.Type().Field(i).Type.Elem()))
			return of.Field(i)
		}
	}
	return reflect.Value{}
}
