// Package form makes forms of JSON Schemas. It turns a JSON object into fields that a template renders, and what a
// browser sends for them back into the object.
//
// A form never loses a value: what the schema does not describe, or the form can't express, stays as it is, byte for
// byte, in its place. It does not validate: the owner of the object does, and Place puts the violations at the fields.
// The package reads the schema for the kinds of inputs alone, so it ignores keywords that only restrict values.
//
// The inputs of a form are named by JSON pointers into the object that was shown, the base, which the form sends
// along. Names of the form:
//
//	/title          the value of a field; in /tags/3 the number is that of the row, which it keeps when others go
//	/limits/~r0     the value of a row of a map, whose name is in name:/limits/~r0
//	rows:/tags      the rows that are left, in order: "0 2 3"; those beyond the base are new
//	add, remove     of a button: the list that gets one more row, the row that is removed
package form

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"belfry/internal/ordered"
	"belfry/pkg/errs"
	"belfry/pkg/object"
)

// Bounds of a form. Values beyond them have a field of JSON.
const (
	maxFields  = 200 // of a base
	maxNew     = 200 // fields in rows that are added
	maxLevels  = 4   // of objects and arrays in each other
	maxOptions = 200
	maxName    = 1000    // bytes of a name in a map
	maxText    = 1 << 20 // bytes of an input
	maxInput   = 200     // bytes of a text in one line
)

// Options are what the schema of an object does not say.
type Options struct {
	References map[string]string         // by pointer: the target; such a field has no input, and the caller renders it
	Omit       func(pointer string) bool // these have no field, and stay as they are
	ReadOnly   func(pointer string) bool // these are shown
	Legible    func(text string) string  // escapes hidden characters as JSON does; a text with one is JSON
	Boxes      bool                      // a boolean that is absent means false
}

// Schema makes forms for objects of a JSON Schema. It is safe for concurrent use.
type Schema struct {
	root    *ordered.Object
	options Options
}

// New reads a schema. One that is no object is errs.Invalid.
func New(schema []byte, o Options) (*Schema, error) {
	v, err := ordered.Value(object.WithoutMark(schema))
	if err != nil {
		return nil, errs.Wrap(err, errs.Invalid, "the schema is not JSON")
	}
	root, ok := v.(*ordered.Object)
	if !ok {
		return nil, errs.New(errs.Invalid, "the schema is not an object")
	}
	none := func(string) bool { return false }
	if o.Omit == nil {
		o.Omit = none
	}
	if o.ReadOnly == nil {
		o.ReadOnly = none
	}
	if o.Legible == nil {
		o.Legible = func(text string) string { return text }
	}
	return &Schema{root: root, options: o}, nil
}

// Kind is how a field is rendered.
type Kind string

// The kinds of fields.
const (
	Text       Kind = "text"
	Long       Kind = "long"       // a text of several lines
	Expression Kind = "expression" // a text that is one of CEL
	Number     Kind = "number"     // a text, too: inputs of numbers drop what they don't understand
	Mixed      Kind = "mixed"      // a text, a number or a boolean: what it looks like
	Check      Kind = "check"      // a boolean that is set
	Choice     Kind = "choice"     // one of Options
	Date       Kind = "date"       // these hold what the inputs of browsers hold: times are in UTC
	DateTime   Kind = "datetime"   //
	Time       Kind = "time"       //
	Email      Kind = "email"      //
	URL        Kind = "url"        //
	JSON       Kind = "json"       // any value as JSON
	Reference  Kind = "reference"
	Group      Kind = "group" // an object: Fields, and the rows of a map
	List       Kind = "list"  // an array: a field for each row
)

// Field is a field of a form.
type Field struct {
	Kind     Kind
	Name, ID string // of the input
	Pointer  string // of the value in the object
	Label    string
	Help     string
	Bounds   string // of a number, in words
	Default  string // in the schema, as JSON
	Target   string // of a reference
	Required bool
	ReadOnly bool // Text has the value

	Text    string
	Checked bool
	Options []Option

	Fields []*Field // of a group
	Rows   []*Field // of a list, or a map
	Map    bool     // the rows of a group have names
	IDs    string   // of the rows
	Other  string   // what is in a group without a field, as JSON; "" for nothing

	Row     bool // it can be removed
	Named   bool // it is a row of a map
	Key     string
	KeyName string // of the input for its name
	KeyIs   string // what its name is; "" if the schema does not say

	Problems []string
	Focus    bool // it is, or begins, a row that has just been added
	Data     any  // of the caller

	id      int            // of a row
	mapped  map[string]int // the ids of the rows of a map, by their names in the base
	value   []byte         // in the base; nil: absent
	integer bool
	types   types
}

// Option is an option of a choice.
type Option struct {
	Value, Label string
	Selected     bool
}

// Form is the form of an object.
type Form struct {
	*Field
	Base string // the object that the names of inputs are about, as JSON
	made *builder
}

// Show returns the form of an object, which may have an array or map with one row more or less: see Apply.
func (s *Schema) Show(base []byte) (*Form, error) { return s.show(base, nil) }

// Submit returns the form of a base with the values that a browser has sent, and the object with these. The values of
// buttons named add and remove change the rows.
//
// A malformed value, such as letters for a number, becomes a JSON string in the object: nothing that was typed is lost.
// It is returned as problems, by the pointers in the object. A value for which the form has no field is an error: the
// schema may have changed since the form was rendered.
func (s *Schema) Submit(base []byte, values map[string][]string) (*Form, []byte, []errs.Field, error) {
	f, err := s.show(base, values)
	if err != nil {
		return nil, nil, nil, err
	}
	a := &applier{values: values, known: map[string]bool{}}
	text := a.value(f.Field, "")
	if err := f.made.err; err != nil {
		return nil, nil, nil, err
	}
	if err := a.unknown(f.made.removed); err != nil {
		return nil, nil, nil, err
	}
	for _, button := range []string{"add", "remove"} {
		if name := last(values[button]); len(values[button]) > 0 && !f.made.done[button] {
			return nil, nil, nil, errs.New(errs.Invalid, "the form has no row to %s at %s", button, quote(name))
		}
	}
	if text == nil {
		text = []byte("{}")
	}
	return f, text, a.problems, nil
}

// show makes the form of a base. Without values it has the rows of the base.
func (s *Schema) show(base []byte, values map[string][]string) (*Form, error) {
	if _, err := object.Parse(base); err != nil {
		return nil, err
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, object.WithoutMark(base)); err != nil {
		return nil, errs.Wrap(err, errs.Invalid, "the object is not JSON")
	}
	text := object.Canonical(compact.Bytes())
	b := &builder{schema: s, values: values, most: maxFields, done: map[string]bool{}}
	root := b.field(place{schema: s.root, value: text, required: true})
	if b.err != nil {
		return nil, b.err
	}
	return &Form{Field: root, Base: string(text), made: b}, nil
}

// Usable reports whether the schema describes fields of the object: JSON is all that is left otherwise.
func (f *Form) Usable() bool { return f.Kind == Group && (len(f.Fields) > 0 || f.Map) }

// Place puts violations at the innermost fields that show their values, and returns those that no field shows.
func (f *Form) Place(found []errs.Field) (rest []errs.Field) {
	for _, v := range found {
		at := f.at(v.Pointer)
		if missing := at.missing(v); missing != nil {
			at, v.Message = missing, "a value is required"
		}
		if at != nil && at != f.Field {
			at.Problems = append(at.Problems, v.Message)
		} else {
			rest = append(rest, v)
		}
	}
	return rest
}

// missing returns the field of a property whose absence is a violation; nil if the violation is another one. Its
// pointer is that of the object, and its message begins with the name.
func (f *Field) missing(v errs.Field) *Field {
	if f == nil || v.Keyword != "required" || v.Pointer != f.Pointer {
		return nil
	}
	for _, inner := range f.Fields {
		name := object.UnescapeToken(strings.TrimPrefix(inner.Pointer, f.Pointer+"/"))
		if inner.Required && strings.HasPrefix(v.Message, `"`+name+`" `) {
			return inner
		}
	}
	return nil
}

// at returns the innermost field around a place.
func (f *Field) at(pointer string) *Field {
	if pointer != f.Pointer && !strings.HasPrefix(pointer, f.Pointer+"/") {
		return nil
	}
	for _, within := range [][]*Field{f.Fields, f.Rows} {
		for _, inner := range within {
			if found := inner.at(pointer); found != nil {
				return found
			}
		}
	}
	return f
}

// Each calls do with each field, those around others first.
func (f *Field) Each(do func(*Field)) {
	do(f)
	for _, within := range [][]*Field{f.Fields, f.Rows} {
		for _, inner := range within {
			inner.Each(do)
		}
	}
}

// last returns the last value of an input: a box that is checked comes after what an unchecked one sends.
func last(values []string) string {
	if len(values) == 0 {
		return ""
	}
	return values[len(values)-1]
}

// quote returns the beginning of a hostile text.
func quote(text string) string {
	if len(text) > 100 {
		text = strings.ToValidUTF8(text[:100], "") + "…"
	}
	return fmt.Sprintf("%q", text)
}
