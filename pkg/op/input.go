package op

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	"belfry/pkg/errs"
	"belfry/pkg/object"
)

// Input is embedded by types of the fields of a body, each of which has a tag:
//
//	type keyForm struct {
//		op.Input
//		Name     string `form:"name,required" doc:"The purpose of the key."`
//		Password string `form:"password,password" doc:"The password of the user, if there is one."`
//		Undo     bool   `form:"undo,html" doc:"An HTML form, which can't DELETE, undoes it."`
//	}
//
// A field is a string, a *string that is nil without a value, a bool, or JSON (json.RawMessage), which an HTML form has
// as text. The name "*" is an object.Object of all others. Options of the tag:
//
//	required          it has to be there; required=program: but in HTML forms
//	html              HTML forms alone have it
//	or=NAME           another name of it; the value is trimmed
//	password, hidden  how the documents show it, or that they don't
//
// Further tags for the documents are enum and only, values of a text, and ref, the component that a program sends.
type Input struct {
	HTML     bool     // it is an HTML form, which has only texts
	Repeated []string // fields that an HTML form has more than once, of which the first counts
	Rest     object.Object
}

// Decode reads the fields of a body from Rest into a struct with an Input. Rest then has the remaining fields.
func Decode[T any](body Input) (in T, err error) {
	err = body.decode(reflect.ValueOf(&in).Elem())
	return in, err
}

// decode is Decode into any struct. It is compiled once, while Decode is compiled for each type.
func (in Input) decode(v reflect.Value) (err error) {
	for _, f := range fieldsOf(v.Type()) {
		if f.html && !in.HTML {
			continue
		}
		to := v.FieldByIndex(f.index)
		switch p := to.Addr().Interface().(type) {
		case *string:
			*p, err = in.text(f)
		case **string:
			if given := in.Rest[f.name]; given != nil && string(given) != "null" {
				*p = new(string)
				**p, err = in.text(f)
			}
		case *bool:
			*p, err = in.flag(f.name)
		case *json.RawMessage:
			*p = in.json(f.name)
		case *object.Object:
			*p = in.Rest
		}
		if err != nil {
			return err
		}
	}
	if to := v.FieldByName("Input"); to.IsValid() {
		to.Set(reflect.ValueOf(in))
	}
	return nil
}

// forPrograms reports whether some fields are for programs as well, and not only for HTML forms.
func forPrograms(fields []field) bool {
	return slices.ContainsFunc(fields, func(f field) bool { return !f.html && !f.hidden })
}

// text removes a text from the fields, "" for an absent one.
func (in Input) text(f field) (string, error) {
	text, err := in.one(f.name)
	if err != nil || f.or == "" {
		return text, err
	}
	other, err := in.one(f.or)
	if text == "" {
		text = other
	}
	return strings.TrimSpace(text), err
}

func (in Input) one(name string) (string, error) {
	value, given := in.Rest[name]
	delete(in.Rest, name)
	if !given || string(value) == "null" {
		return "", nil
	}
	text, ok := object.Text(value)
	if !ok {
		return "", wrongType(name, "must be a string")
	}
	return text, nil
}

// flag removes a boolean from the fields.
func (in Input) flag(name string) (bool, error) {
	value := string(in.Rest[name])
	delete(in.Rest, name)
	switch value {
	case "true", `"true"`, `"on"`, `"1"`:
		return true, nil
	case "", "null", "false", `"false"`, `"off"`, `"0"`, `""`:
		return false, nil
	}
	return false, wrongType(name, `must be true or false, or one of the texts "true", "on", "1", "false", "off", "0"`)
}

// json removes JSON from the fields, which an HTML form has as text.
func (in Input) json(name string) json.RawMessage {
	value := in.Rest[name]
	delete(in.Rest, name)
	if text, ok := object.Text(value); ok {
		return json.RawMessage(text)
	}
	return value
}

func wrongType(field, message string) error {
	return &errs.Error{Kind: errs.Invalid, Message: "a field has the wrong type",
		Fields: []errs.Field{{Pointer: object.Pointer(field), Message: message}}}
}
