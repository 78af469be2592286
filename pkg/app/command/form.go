package command

import (
	"cmp"
	"net/url"
	"reflect"
	"strconv"
	"strings"

	"belfry/pkg/api/console"
	"belfry/pkg/app/plan"
	"belfry/pkg/errs"
)

// formField is a field of a request that a form has.
type formField struct {
	console.Field
	index []int
}

// formFields are the texts, numbers and flags of a request, with the tags that its flags on the command line have: json
// for the name, help, placeholder, default, enum, required, arg. Further tags are for the console:
//
//	label     what the form calls it, instead of its name; of a flag, instead of its help
//	input     the type of its HTML input: email
//	max       its largest size in bytes
//	console   button: another button of the page sets the flag; -: the form lacks it
func formFields(t reflect.Type) (all []formField) {
	for _, s := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(s.Tag.Get("json"), ",")
		if s.Anonymous || !s.IsExported() || name == "-" || s.Tag.Get("console") == "-" {
			continue
		}
		f := formField{index: s.Index, Field: console.Field{
			Name: cmp.Or(name, strings.ToLower(s.Name)), Label: cmp.Or(s.Tag.Get("label"), s.Name),
			Help: s.Tag.Get("help"), Placeholder: s.Tag.Get("placeholder"),
			Kind: cmp.Or(s.Tag.Get("input"), "text"), Value: s.Tag.Get("default"),
		}}
		_, needed := s.Tag.Lookup("required")
		_, argument := s.Tag.Lookup("arg")
		_, optional := s.Tag.Lookup("optional")
		f.Required = needed || argument && !optional
		f.Max, _ = strconv.Atoi(s.Tag.Get("max"))
		switch kind := s.Type.Kind(); {
		case kind == reflect.Bool && s.Tag.Get("console") == console.FieldButton:
			f.Kind = console.FieldButton
		case kind == reflect.Bool:
			f.Kind, f.Label = console.FieldFlag, cmp.Or(s.Tag.Get("label"), f.Help, s.Name)
		case kind == reflect.Int || kind == reflect.Int64:
			f.Kind = "number"
		case kind != reflect.String:
			continue // no form has it
		case s.Tag.Get("enum") != "":
			f.Kind, f.Choices = console.FieldChoice, strings.Split(s.Tag.Get("enum"), ",")
		}
		all = append(all, f)
	}
	return all
}

// shownFields are the fields of a form, with their choices.
func shownFields(request reflect.Type, p *plan.Plan,
	choices func(p *plan.Plan, field string) []string) (all []console.Field) {
	for _, f := range formFields(request) {
		if choices != nil && f.Kind == "text" {
			f.Kind, f.Choices = console.FieldChoice, choices(p, f.Name)
		}
		all = append(all, f.Field)
	}
	return all
}

// readForm reads a request of a type from the fields of a form, and returns a pointer to it.
func readForm(request reflect.Type, form url.Values) (any, error) {
	in := reflect.New(request)
	v := in.Elem()
	for _, f := range formFields(request) {
		to, text := v.FieldByIndex(f.index), form.Get(f.Name)
		switch {
		case text == "":
		case to.Kind() == reflect.Bool:
			to.SetBool(text == strconv.FormatBool(true))
		case to.CanInt():
			n, err := strconv.ParseInt(text, 10, to.Type().Bits())
			if err != nil {
				return nil, errs.New(errs.Invalid, "%s: expected a number", f.Label)
			}
			to.SetInt(n)
		default:
			to.SetString(text)
		}
	}
	return in.Interface(), nil
}
