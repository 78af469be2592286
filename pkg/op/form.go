package op

import (
	"reflect"
	"strings"

	"belfry/internal/ordered"
	"belfry/pkg/apimodel"
)

// Body is a required body of a request.
func Body(content *ordered.Object) *ordered.Object {
	return ordered.Of("required", true, "content", content)
}

// Optional makes a body optional.
func Optional(body *ordered.Object) *ordered.Object {
	body.Set("required", false)
	return body
}

// Form is a body that is JSON, or an HTML form with the same fields: those of T, see Input. It is only an HTML form if
// no field of T is for programs. with has alternating names and schemas, which replace those of T, except if programs
// send a component.
func Form[T any](with ...any) *ordered.Object { return form(fieldsOf(reflect.TypeFor[T]()), with) }

func form(fields []field, with []any) *ordered.Object {
	html := Content(FormType, formSchema(fields, true, with))
	if !forPrograms(fields) {
		return Body(html)
	}
	return Body(ordered.Of(JSONType, ordered.Of("schema", formSchema(fields, false, with)), FormType,
		html.Object(FormType)))
}

// HTMLForm is a body that is only an HTML form, with the fields of T.
func HTMLForm[T any]() *ordered.Object {
	return Body(Content(FormType, formSchema(fieldsOf(reflect.TypeFor[T]()), true, nil)))
}

// formSchema is the schema of a form, for a browser or for a program.
func formSchema(fields []field, html bool, with []any) *ordered.Object {
	properties, replaced := &ordered.Object{}, ordered.Of(with...)
	var required []string
	open := false
	for _, f := range fields {
		switch {
		case f.rest:
			open = true
			continue
		case f.hidden, f.html && !html:
			continue
		case f.required && (!html || !f.program):
			required = append(required, f.name)
		}
		schema := f.schema(html)
		if other := replaced.Object(f.name); other != nil && (f.ref == "" || html) {
			schema = other
		}
		properties.Set(f.name, schema)
	}
	schema := ordered.Of("type", "object", "properties", properties)
	if required != nil {
		schema.Set("required", required)
	}
	if open {
		schema.Set("additionalProperties", true)
	}
	return schema
}

// schema is the schema of a field.
func (f field) schema(html bool) *ordered.Object {
	switch {
	case f.ref != "" && !html:
		return apimodel.Ref(f.ref)
	case f.only != "":
		return Only(f.only)
	case f.enum != nil:
		return OneOf(f.enum, f.doc)
	case f.kind == reflect.Bool:
		return Flag(f.doc)
	case f.password:
		return Password(f.doc)
	case f.or != "":
		return Text(f.doc + "; `" + f.or + "` is another name for this field.")
	}
	return Text(f.doc)
}

// field is a field of a form.
type field struct {
	index    []int
	name     string
	doc      string
	kind     reflect.Kind
	required bool
	program  bool   // required from programs only
	html     bool   // in HTML forms only
	hidden   bool   // the documents do not have it
	password bool   // it is not shown
	rest     bool   // all other fields
	or       string // another name of it
	ref      string // the component that it is for programs
	only     string // the only value
	enum     []string
}

// fieldsOf reads the fields of a type.
func fieldsOf(t reflect.Type) []field {
	var all []field
	for i := range t.NumField() {
		s := t.Field(i)
		if s.Anonymous {
			for _, inner := range fieldsOf(s.Type) {
				inner.index = append([]int{i}, inner.index...)
				all = append(all, inner)
			}
		}
		tag, ok := s.Tag.Lookup("form")
		if !ok {
			continue
		}
		options := strings.Split(tag, ",")
		f := field{index: []int{i}, name: options[0], doc: s.Tag.Get("doc"), kind: s.Type.Kind(), ref: s.Tag.Get("ref"),
			only: s.Tag.Get("only"), rest: options[0] == "*"}
		if enum := s.Tag.Get("enum"); enum != "" {
			f.enum = strings.Split(enum, ",")
		}
		for _, option := range options[1:] {
			switch name, value, _ := strings.Cut(option, "="); name {
			case "required":
				f.required, f.program = true, value == "program"
			case "html":
				f.html = true
			case "hidden":
				f.hidden = true
			case "password":
				f.password = true
			case "or":
				f.or = value
			default:
				panic("op: " + t.Name() + "." + s.Name + " has the unknown option " + option)
			}
		}
		all = append(all, f)
	}
	return all
}
