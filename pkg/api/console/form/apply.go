package form

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	"belfry/pkg/errs"
	"belfry/pkg/object"
)

// applier puts what a browser has sent into the fields of a form, and makes the object of them.
type applier struct {
	values   map[string][]string
	known    map[string]bool // inputs
	problems []errs.Field
}

// value returns the JSON of a field at a place of the object; nil: it is absent.
func (a *applier) value(f *Field, pointer string) []byte {
	f.move(pointer)
	a.known[f.Name], a.known["rows:"+f.Name] = true, true
	if f.ReadOnly {
		f.Each(func(inner *Field) {
			a.known[inner.Name], a.known[inner.KeyName], a.known["rows:"+inner.Name] = true, true, true
		})
		return f.value
	}
	switch f.Kind {
	case Reference:
		return f.value
	case Group:
		return a.group(f, pointer)
	case List:
		return a.list(f, pointer)
	}
	sent, ok := a.values[f.Name]
	text := normal(last(sent))
	if !ok || text == normal(f.Text) {
		return f.value
	}
	f.retype(text)
	value, problem := f.read(text)
	if len(text) > maxText {
		value, problem = f.value, "is too long"
	}
	if problem != "" {
		a.fail(f, problem)
	}
	return value
}

func (a *applier) fail(f *Field, problem string) {
	a.problems = append(a.problems, errs.Field{Pointer: f.Pointer, Message: problem})
}

// move sets the place of a field, and of those in it as far as they are not moved by themselves.
func (f *Field) move(pointer string) {
	before := f.Pointer
	f.Each(func(inner *Field) {
		if rest, ok := strings.CutPrefix(inner.Pointer, before); ok {
			inner.Pointer = pointer + rest
		}
	})
}

// normal returns a text with the ends of lines as browsers show them.
func normal(text string) string {
	return strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
}

// retype sets what a field shows.
func (f *Field) retype(text string) {
	f.Text, f.Checked = text, text == "true"
	for i := range f.Options {
		f.Options[i].Selected = f.Options[i].Value == text
	}
}

// group returns the object of a group: with its members in their order, and then the new ones.
func (a *applier) group(f *Field, pointer string) []byte {
	byName, rows := map[string][]byte{}, map[int]*Field{}
	for _, inner := range f.Fields {
		name := object.UnescapeToken(inner.Name[strings.LastIndexByte(inner.Name, '/')+1:])
		byName[name] = a.value(inner, pointer+object.Pointer(name))
	}
	for _, row := range f.Rows {
		rows[row.id] = row
	}
	var members [][]byte
	taken := map[string]bool{}
	add := func(name string, value []byte) {
		if taken[name] = true; value != nil {
			members = append(members, append(append(object.AppendString(nil, name), ':'), value...))
		}
	}
	_ = object.Each(f.value, func(name string, value []byte) bool {
		if is, ok := byName[name]; ok {
			add(name, is)
			return true
		}
		id, mapped := f.mapped[name]
		if !mapped {
			add(name, value)
		} else if row := rows[id]; row != nil {
			a.row(f, row, pointer, taken, add)
			delete(rows, id)
		}
		return true
	})
	for _, inner := range f.Fields {
		name := object.UnescapeToken(inner.Name[strings.LastIndexByte(inner.Name, '/')+1:])
		if !taken[name] {
			add(name, byName[name])
		}
	}
	for _, row := range f.Rows {
		if rows[row.id] != nil {
			a.row(f, row, pointer, taken, add)
		}
	}
	if len(members) == 0 && f.isAbsent('{') {
		return f.value
	}
	return joined('{', members, '}')
}

// row adds a row of a map. Where its name can't be, it keeps the one that it had.
func (a *applier) row(f, row *Field, pointer string, taken map[string]bool, add func(string, []byte)) {
	a.known[row.KeyName] = true
	before := row.Key
	if sent, ok := a.values[row.KeyName]; ok {
		row.Key = last(sent)
	}
	value := a.value(row, pointer+object.Pointer(row.Key))
	name := row.Key
	switch {
	case name == "" && row.value == nil && (value == nil || string(value) == "{}"):
		return // nothing is typed yet
	case name == "" && before != "":
		a.fail(row, "the name is missing")
		name = before
	case name == "" && row.value != nil && !slices.ContainsFunc(f.Rows,
		func(r *Field) bool { return r != row && r.Key == "" }):
	case name == "":
		a.fail(row, "the name is missing")
	case !nameable(name) || len(name) > maxName:
		a.fail(row, "the name has more than 1,000 bytes, or a character that names can't have")
		name = before
	}
	for taken[name] {
		if name == row.Key {
			a.fail(row, "another row or field has this name")
		}
		name += " (2)"
	}
	if value == nil && row.value == nil {
		value = []byte(`""`) // a name alone was typed: it is not lost
	}
	add(name, value)
}

// list returns the array of a list. Rows in which nothing is typed are left out.
func (a *applier) list(f *Field, pointer string) []byte {
	var elements [][]byte
	for _, row := range f.Rows {
		if value := a.value(row, pointer+"/"+strconv.Itoa(len(elements))); value != nil {
			elements = append(elements, value)
		} else {
			row.move(pointer + "/-")
		}
	}
	if len(elements) == 0 && f.isAbsent('[') {
		return f.value
	}
	return joined('[', elements, ']')
}

// isAbsent reports whether an object or array without content is left out. A row that is added is not.
func (f *Field) isAbsent(begin byte) bool {
	return f.value == nil && !f.Row || f.value != nil && f.value[0] != begin
}

func joined(begin byte, parts [][]byte, end byte) []byte {
	return append(append([]byte{begin}, bytes.Join(parts, []byte{','})...), end)
}

// unknown reports a value for which the form has no field, except in the row that is removed.
func (a *applier) unknown(removed string) error {
	for name := range a.values {
		bare := strings.TrimPrefix(strings.TrimPrefix(name, "name:"), "rows:")
		if bare == "" || bare[0] != '/' || a.known[name] {
			continue
		}
		if removed != "" && (bare == removed || strings.HasPrefix(bare, removed+"/")) {
			continue
		}
		return errs.New(errs.Invalid, "the form has no field %s: the schema may have changed. Edit the object as JSON",
			quote(name))
	}
	return nil
}

// read returns the JSON of a text in a field; nil: it is absent. A text that is malformed is a JSON string.
func (f *Field) read(text string) (value []byte, problem string) {
	asText := func() []byte { return object.AppendString(nil, text) }
	if strings.ContainsRune(text, 0) {
		return f.value, "contains a NUL character"
	}
	bare := strings.TrimSpace(text)
	if bare == "" && f.Kind != Text && f.Kind != Long && f.Kind != Mixed || text == "" {
		return f.empty(), ""
	}
	switch f.Kind {
	case Number:
		if form := aNumber; f.integer {
			if aInteger.MatchString(bare) {
				return []byte(bare), ""
			}
			return asText(), "expected a whole number"
		} else if form.MatchString(bare) {
			return []byte(bare), ""
		}
		return asText(), "expected a number, such as 12 or 0.5"
	case Mixed:
		return f.readMixed(text, bare), ""
	case Check:
		return []byte(boxText(text == "true")), ""
	case Choice:
		if !slices.ContainsFunc(f.Options, func(o Option) bool { return o.Value == text }) {
			return f.value, "is not one of the options"
		}
		return []byte(text), ""
	case JSON:
		o, err := object.Parse([]byte(`{"v":` + text + `}`))
		if err != nil || len(o) != 1 {
			return asText(),
				"expected JSON: a text in double quotes, a number, true, false, null, an array or an object"
		}
		return object.Canonical(o["v"]), ""
	case DateTime, Time:
		date := ""
		if f.Kind == DateTime {
			date = "2006-01-02T"
		}
		if written, ok := readTime(date, bare); ok {
			return object.AppendString(nil, written), ""
		}
	}
	return asText(), ""
}

// empty returns the value of a field that somebody has emptied: a text that was empty before is not absent.
func (f *Field) empty() []byte {
	if string(f.value) == `""` || string(f.value) == "null" {
		return f.value
	}
	return nil
}

// readMixed returns a text as what it looks like, as far as the schema allows that. A text stays a text.
func (f *Field) readMixed(text, bare string) []byte {
	was := f.value != nil && f.value[0] == '"'
	isText := slices.Contains(f.types, "string")
	looks := aNumber.MatchString(bare) || bare == "true" || bare == "false"
	if looks && f.types.allow([]byte(bare)) && (!was || !isText) {
		return []byte(bare)
	}
	return object.AppendString(nil, text)
}
