package form

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"encoding/json"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"

	"belfry/internal/ordered"
	"belfry/pkg/errs"
	"belfry/pkg/object"
)

// builder makes the fields of a form.
type builder struct {
	schema *Schema
	values map[string][]string // that the browser has sent; nil: none

	count   int // fields of what is being built
	most    int // of them
	added   int // fields in new rows
	done    map[string]bool
	removed string // the row that is removed
	err     error
}

// place is a value of an object, and what describes it.
type place struct {
	schema        any
	path          []*ordered.Object
	name, pointer string
	label         string
	value         []byte // nil: absent
	required      bool
	readOnly      bool
	level         int
}

// field makes the field of a place, and those in it.
func (b *builder) field(p place) *Field {
	b.count++
	f := &Field{Name: p.name, ID: idOf(p.name), Pointer: p.pointer, Label: p.label, Required: p.required,
		value: p.value}
	if len(p.path) == 0 {
		p.path = []*ordered.Object{b.schema.root}
	}
	s, ok := b.schema.resolve(p.schema, p.path, p.value)
	if s.Object != nil {
		f.describe(s.Object)
	}
	f.ReadOnly = p.readOnly || b.schema.options.ReadOnly(p.pointer) || ok && s.Get("readOnly") == true
	p.readOnly = f.ReadOnly
	if target := b.schema.options.References[p.pointer]; target != "" {
		f.Kind, f.Target = Reference, target
		return f
	}
	if !ok {
		return b.json(f)
	}
	p.path = s.path
	before := b.count
	if !b.shape(f, p, s) || b.count > b.most && p.level > 0 {
		b.count = before
		return b.json(f)
	}
	return f
}

// shape makes a field of the kind that a schema asks for; false: no field can have the value.
func (b *builder) shape(f *Field, p place, s resolved) bool {
	all, null := typesOf(s.Object)
	null = null || s.nullable
	f.types = all
	options, listed := optionsOf(s.Object)
	switch isNull := p.value != nil && kindOf(p.value) == "null"; {
	case listed:
		return f.choice(options, null)
	case isNull && !null, p.value != nil && !isNull && !all.allow(p.value) && !f.isMalformed():
		return false
	case isSwitch(all) && (p.value == nil || kindOf(p.value) == "boolean"):
		return f.boolean(null, b.schema.options.Boxes)
	case len(all) > 1 && !slices.Contains(all, "object") && !slices.Contains(all, "array") && !isNull:
		return f.mixed() && b.legible(f.Text)
	}
	kind := pick(all, p.value)
	f.types = types{kind}
	switch kind {
	case "object":
		return b.group(f, p, s)
	case "array":
		return b.list(f, p, s)
	case "string":
		return f.text(s.Object) && b.legible(f.Text)
	case "number", "integer":
		return f.number(s.Object, kind == "integer")
	case "boolean":
		return f.boolean(null, b.schema.options.Boxes)
	}
	return false
}

// isSwitch reports whether a value is a boolean, or a text that stands for one, as variables of a configuration do.
func isSwitch(t types) bool {
	return len(t) == 2 && slices.Contains(t, "boolean") && slices.Contains(t, "string")
}

// pick returns the type of a field: that of the value, or one of which there can be several, or else the first.
func pick(all types, value []byte) string {
	if len(all) == 0 {
		return ""
	}
	for _, name := range all {
		if value != nil && (types{name}).allow(value) {
			return name
		}
	}
	if slices.Contains(all, "array") {
		return "array"
	}
	return all[0]
}

// group makes the fields of an object: of the properties that it needs first, and then of the others in the order of
// the schema. A schema for other properties makes it a map.
func (b *builder) group(f *Field, p place, s resolved) bool {
	properties := s.Object.Object("properties").Members()
	more, isMap := s.Get("additionalProperties").(*ordered.Object)
	if p.level >= maxLevels || len(properties) == 0 && !isMap && p.level > 0 {
		return false
	}
	f.Kind = Group
	required, _ := s.Get("required").([]any)
	needs := func(m ordered.Member) bool { return slices.Contains(required, any(m.Name)) }
	first := slices.DeleteFunc(slices.Clone(properties), func(m ordered.Member) bool { return !needs(m) })
	rest := slices.DeleteFunc(slices.Clone(properties), needs)
	shown := map[string]bool{}
	inner := func(name string) place {
		return place{path: p.path, pointer: p.pointer + object.Pointer(name), value: member(p.value, name),
			readOnly: p.readOnly, level: p.level + 1}
	}
	for _, m := range slices.Concat(first, rest) {
		one := inner(m.Name)
		if b.schema.options.Omit(one.pointer) || !nameable(m.Name) {
			continue
		}
		if b.count >= b.most {
			break
		}
		one.schema, one.label, one.required = m.Value, m.Name, needs(m)
		one.name = p.name + object.Pointer(m.Name)
		f.Fields = append(f.Fields, b.field(one))
		shown[m.Name] = true
	}
	var others []string
	_ = object.Each(p.value, func(name string, _ []byte) bool {
		declared := slices.ContainsFunc(properties, func(m ordered.Member) bool { return m.Name == name })
		if !shown[name] && (declared || !isMap) && !b.schema.options.Omit(p.pointer+object.Pointer(name)) {
			others = append(others, name)
		}
		return true
	})
	f.Other = part(p.value, others)
	if isMap {
		keyIs, _ := s.Object.Object("propertyNames").Get("title").(string)
		return b.mapRows(f, p, mapSchema{more, keyIs}, inner, properties)
	}
	return true
}

// mapSchema describes properties that a schema does not name.
type mapSchema struct {
	values any
	keyIs  string
}

// mapRows adds the rows of the properties that only a schema for all others describes.
func (b *builder) mapRows(f *Field, p place, schema mapSchema, inner func(string) place,
	properties []ordered.Member) bool {
	f.Map = true
	f.mapped = map[string]int{}
	var names []string
	_ = object.Each(p.value, func(name string, _ []byte) bool {
		if !slices.ContainsFunc(properties, func(m ordered.Member) bool { return m.Name == name }) {
			f.mapped[name] = len(names)
			names = append(names, name)
		}
		return true
	})
	if slices.ContainsFunc(names, func(name string) bool { return !nameable(name) || !b.legible(name) }) {
		return false
	}
	return b.rows(f, p.name+"/~r", len(names), func(id int, one place) *Field {
		key := ""
		if id < len(names) {
			key = names[id]
			one.pointer, one.value = inner(key).pointer, member(p.value, key)
		}
		one.schema, one.path, one.level, one.readOnly = schema.values, p.path, p.level+1, p.readOnly
		one.label = cmp.Or(key, "Value")
		row := b.field(one)
		row.Named, row.Key, row.KeyName, row.KeyIs = true, key, "name:"+row.Name, schema.keyIs
		return row
	})
}

// list makes the rows of an array.
func (b *builder) list(f *Field, p place, s resolved) bool {
	items, ok := s.Get("items").(*ordered.Object)
	if !ok || s.Has("prefixItems") || p.level >= maxLevels {
		return false
	}
	f.Kind = List
	var elements [][]byte
	object.Elements(p.value, func(e []byte) bool {
		elements = append(elements, e)
		return len(elements) <= b.most
	})
	return b.rows(f, p.name+"/", len(elements), func(id int, one place) *Field {
		if id < len(elements) {
			one.value = elements[id]
			one.pointer = p.pointer + "/" + strconv.Itoa(id)
		}
		one.schema, one.path, one.level, one.readOnly = items, p.path, p.level+1, p.readOnly
		one.label = strconv.Itoa(len(f.Rows) + 1)
		row := b.field(one)
		if row.Label != one.label { // the schema names all rows alike
			row.Label += " " + one.label
		}
		return row
	})
}

// rows makes the rows of a list or a map, of which the base has so many: those, or the ones that the browser has sent.
func (b *builder) rows(f *Field, prefix string, n int, row func(id int, one place) *Field) bool {
	if n > b.most-b.count {
		return false
	}
	ids := b.ids(f, n)
	for i, id := range ids {
		one := place{name: prefix + strconv.Itoa(id), pointer: f.Pointer + "/~" + strconv.Itoa(id)}
		var made *Field
		if id < n {
			made = row(id, one)
		} else {
			made = b.newRow(func() *Field { return row(id, one) })
		}
		made.Row, made.id = true, id
		if i == len(ids)-1 && b.isAdded(f) {
			made.first().Focus = true
		}
		f.Rows = append(f.Rows, made)
	}
	texts := make([]string, len(ids))
	for i, id := range ids {
		texts[i] = strconv.Itoa(id)
	}
	f.IDs = strings.Join(texts, " ")
	return true
}

// first returns the field of a row that people fill in first.
func (f *Field) first() *Field {
	for f.Kind == Group && !f.Named && len(f.Fields) > 0 {
		f = f.Fields[0]
	}
	return f
}

// newRow builds a row that the base lacks. Its fields count for themselves: how the fields of the base are rendered
// does not depend on what is added.
func (b *builder) newRow(build func() *Field) *Field {
	count, most := b.count, b.most
	b.count, b.most = 0, maxFields
	made := build()
	b.added += b.count
	b.count, b.most = count, most
	if b.added > maxNew && b.err == nil {
		b.err = errs.New(errs.TooLarge, "the form has too many new rows: save first, or edit the object as JSON")
	}
	return made
}

// isAdded reports whether a list gets a row more.
func (b *builder) isAdded(f *Field) bool {
	return len(b.values["add"]) > 0 && last(b.values["add"]) == f.Name
}

// ids returns the rows of a list: as the browser has sent them, with the change of its button.
func (b *builder) ids(f *Field, n int) []int {
	sent, ok := b.values["rows:"+f.Name]
	ids, next := make([]int, 0, n), n
	if !ok {
		for id := range n {
			ids = append(ids, id)
		}
	}
	for _, text := range strings.Fields(last(sent)) {
		id, err := strconv.Atoi(text)
		if err != nil || id < 0 || id >= n+10*maxNew || slices.Contains(ids, id) || len(ids) >= n+maxNew {
			if b.err == nil {
				b.err = errs.New(errs.Invalid, "the form has malformed rows at %s: open the page again", quote(f.Name))
			}
			return nil
		}
		ids, next = append(ids, id), max(next, id+1)
	}
	if b.isAdded(f) && !f.ReadOnly {
		ids, b.done["add"] = append(ids, next), true
	}
	removed := last(b.values["remove"])
	if left, ok := strings.CutPrefix(removed, f.Name+"/"); ok && !f.ReadOnly {
		id, err := strconv.Atoi(strings.TrimPrefix(left, "~r"))
		if at := slices.Index(ids, id); err == nil && at >= 0 {
			ids, b.done["remove"], b.removed = slices.Delete(ids, at, at+1), true, removed
		}
	}
	return ids
}

// json makes a field of any value as JSON.
func (b *builder) json(f *Field) *Field {
	text := f.value
	if len(text) <= maxIndented && bytes.Count(text, []byte{'{'})+bytes.Count(text, []byte{'['}) <= maxIndented/20 {
		var indented bytes.Buffer
		if json.Indent(&indented, text, "", "  ") == nil {
			text = indented.Bytes()
		}
	}
	f.Kind, f.Text = JSON, b.schema.options.Legible(string(text))
	f.Fields, f.Rows, f.Map, f.IDs, f.Other, f.Options = nil, nil, false, "", "", nil
	return f
}

// maxIndented bounds the bytes of JSON that is indented: what is nested deeply would become much more.
const maxIndented = 2000

// legible reports whether a text has no hidden characters.
func (b *builder) legible(text string) bool { return b.schema.options.Legible(text) == text }

// describe sets the texts of a field.
func (f *Field) describe(s *ordered.Object) {
	if title, ok := s.Get("title").(string); ok && title != "" {
		f.Label = title
	}
	f.Help, _ = s.Get("description").(string)
	if s.Has("default") {
		f.Default = encode(s.Get("default"))
	}
}

// member returns a member of an object; nil for none.
func member(value []byte, name string) []byte {
	if len(value) == 0 || value[0] != '{' {
		return nil
	}
	return object.Field(value, name)
}

// part returns some members of an object as JSON; "" for none.
func part(value []byte, names []string) string {
	if len(names) == 0 {
		return ""
	}
	return string(object.Without(value, func(name string) bool { return !slices.Contains(names, name) }))
}

// nameable reports whether a name can be in a form: browsers change ends of lines.
func nameable(name string) bool {
	return len(name) <= maxName && !strings.ContainsAny(name, "\r\n\x00")
}

// idOf returns the id of an input in a page.
func idOf(name string) string {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name))
	return "f" + hex.EncodeToString(h.Sum(nil))
}
