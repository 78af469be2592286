package decode

import (
	"fmt"
	"reflect"
	"slices"

	"belfry/config/value"
)

// AnyKey stands for the keys that the author of the file chooses, such as names of stores.
const AnyKey = "Any"

// Fragment is a part of a JSON Schema.
type Fragment = value.Fragment

// Description is the documentation of a key.
type Description struct{ Meaning, Default string }

// Schema makes the JSON Schema of a file from the struct that it is read into.
type Schema struct {
	Describe func(path string) Description // returns what the documentation says about the key at a path
	// is called for each key, with its default as in a file, or nil; nil: for none
	Visit func(path string, k *Key, initial any)
}

// Section makes the schema of a struct with its defaults, without some of its keys. An empty section may be null.
func (b *Schema) Section(path string, of any, without string) Fragment {
	return b.section(path, reflect.ValueOf(of).Elem(), without)
}

func (b *Schema) section(path string, of reflect.Value, without string) Fragment {
	setDefaults(of)
	all := layoutOf(of.Type(), without).keys
	for i := range all {
		if k := &all[i]; k.Name == "type" && k.Format.Choices != nil {
			return b.Union(path, k, func(kind string) Fragment {
				newVariant(of, kind)
				return b.keys(path,
					of, slices.DeleteFunc(slices.Clone(all), func(k Key) bool {
						return k.variant != "" &&
							k.variant != kind
					}))
			})
		}
	}
	return b.keys(path, of, all)
}

// Union makes the schema of a section whose keys depend on that of its type. Without one it is the type by default.
func (b *Schema) Union(path string, kind *Key, variant func(kind string) Fragment) Fragment {
	var all []Fragment
	for _, choice := range kind.Format.Choices {
		condition := Fragment{"properties": Fragment{"type": Fragment{"const": choice}}}
		if choice != kind.initial {
			condition["required"] = []string{"type"}
		}
		schema := variant(choice)
		schema["properties"].(Fragment)["type"] = b.Loose(path, kind)
		all = append(all, Fragment{"if": condition, "then": schema})
	}
	return Fragment{"type": []string{"object", "null"}, "properties": Fragment{"type": b.Loose(path, kind)},
		"allOf": all}
}

// Loose makes the schema of a key of a section that no field declares.
func (b *Schema) Loose(path string, k *Key) Fragment {
	return b.Named(Join(path, k.Name), k, k.parseInitial(""), k.Format.Schema())
}

func (b *Schema) keys(path string, of reflect.Value, keys []Key) Fragment {
	schema := Fragment{"type": []string{"object", "null"}, "additionalProperties": false}
	properties, required := Fragment{}, []string{}
	for i := range keys {
		k := &keys[i]
		switch {
		case k.Name == "*":
			b.entries(path, k, of.FieldByIndex(k.index), schema, properties)
		case k.index == nil:
			properties[k.Name] = b.Loose(path, k)
		default:
			field := of.FieldByIndex(k.index)
			initial := k.parseInitial("")
			if initial == nil {
				initial = field.Interface()
			}
			properties[k.Name] = b.value(Join(path, k.Name), k, initial, field)
		}
		if k.Required != "" {
			required = append(required, k.Name)
		}
	}
	if len(properties) > 0 {
		schema["properties"] = properties
	}
	if len(required) > 0 {
		schema["required"] = slices.Sorted(slices.Values(required))
		schema["type"] = "object"
	}
	return schema
}

// value makes the schema of the value at a path: a section, a map, a list or a single value.
func (b *Schema) value(path string, k *Key, initial any, of reflect.Value) Fragment {
	switch kind := of.Kind(); {
	case k.special:
		return b.Named(path, k, nil, of.Addr().Interface().(Special).Schema(b, path))
	case kind == reflect.Pointer:
		return b.Named(path, k, nil, b.section(path, reflect.New(of.Type().Elem()).Elem(), k.without))
	case k.isSection(of.Type()):
		section := b.section(path, of, k.without)
		if word := layoutOf(of.Type(), "").word; word != nil {
			return b.Named(path, word, word.parseInitial(""), append(b.word(path, word), section)...)
		}
		return b.Named(path, k, nil, section)
	case kind == reflect.Map:
		schema, properties := Fragment{"type": []string{"object", "null"}, "additionalProperties": false}, Fragment{}
		if b.entries(path, k, of, schema, properties); len(properties) > 0 {
			schema["properties"] = properties
		}
		return b.Named(path, k, nil, schema)
	case kind == reflect.Slice && k.list != "" && of.Type().Elem().Kind() != reflect.Slice:
		return b.Named(path, k, nil, Fragment{"type": "string"}, b.list(path, k, of.Type().Elem()))
	case kind == reflect.Slice:
		return b.Named(path, k, nil, b.list(path, k, of.Type().Elem()))
	}
	return b.Named(path, k, initial, k.Format.Schema())
}

// word makes the schemas of a value that stands for a section.
func (b *Schema) word(path string, word *Key) []Fragment {
	if word.typ.Kind() == reflect.Slice {
		return []Fragment{{"type": "string"}, b.list(path, word, word.typ.Elem())}
	}
	return []Fragment{word.Format.Schema()}
}

// entries adds the schemas of the entries of a map.
func (b *Schema) entries(path string, k *Key, of reflect.Value, schema, properties Fragment) {
	entry := func(name string) Fragment {
		one := reflect.New(of.Type().Elem()).Elem()
		if initial := of.MapIndex(reflect.ValueOf(name)); initial.IsValid() {
			one.Set(initial)
		}
		return b.value(Join(path, name), k, nil, one)
	}
	for _, name := range k.fixed {
		properties[name] = entry(name)
	}
	if len(k.fixed) == 0 {
		schema["additionalProperties"] = entry(AnyKey)
	}
}

// list makes the schema of a list. Items that are lists of words are texts.
func (b *Schema) list(path string, k *Key, of reflect.Type) Fragment {
	items := *k
	items.list, items.Required = "", ""
	if of.Kind() == reflect.Slice {
		of = of.Elem()
	}
	return Fragment{"type": "array", "maxItems": maxItems,
		"items": b.value(path+"[]", &items, nil, reflect.New(of).Elem())}
}

// Named completes the schema of a key with its documentation. A key can have several kinds of values.
func (b *Schema) Named(path string, k *Key, initial any, all ...Fragment) Fragment {
	schema := Fragment{"anyOf": all}
	if len(all) == 1 {
		schema = all[0]
	}
	d := b.Describe(path)
	if d.Meaning != "" {
		schema["description"] = d.Meaning
	}
	// The defaults that depend on other values are in the documentation alone, and so are those of secrets.
	initial = k.Format.Default(initial)
	if initial != nil && !k.secret && d.Default == fmt.Sprint(initial) {
		schema["default"] = initial
	}
	if b.Visit != nil {
		b.Visit(path, k, initial)
	}
	return schema
}
