package console

import (
	"net/url"
	"slices"
	"strings"

	"belfry/pkg/api/console/form"
	"belfry/pkg/errs"
	"belfry/pkg/object"
	"belfry/pkg/store"
)

// The side of an object's page that is submitted.
const (
	asForm = "form"
	asJSON = "json"
)

// editing is an object that is being edited: as JSON, and beside it as a form where the store has a schema for one.
type editing struct {
	Mode   string     // what was edited last, which is what counts; "" where there is JSON alone
	Form   *form.Form // nil: the store has no schema, or the JSON is malformed
	Script bool       // a script has asked: both can be edited
	Edited bool       // what is shown is not what is stored
}

// storeForm is the form of the objects of a store, by the schema that the store had.
type storeForm struct {
	of    store.Validator
	form  *form.Schema // nil: the schema gives none
	facts map[string]fieldFacts
}

// formOf returns what makes forms for the objects of a store; nil for JSON alone.
func (v *objectsView) formOf(name string, st *store.Store) *form.Schema {
	return v.storeForm(name, st).form
}

// storeForm returns the form of the objects of a store, which is made once for a schema.
func (v *objectsView) storeForm(name string, st *store.Store) storeForm {
	texts, ok := st.Schema().(interface{ Text() []byte })
	if !ok {
		return storeForm{}
	}
	if known, ok := v.forms.Load(name); ok && known.(storeForm).of == st.Schema() {
		return known.(storeForm)
	}
	o := form.Options{References: map[string]string{}, Legible: legible,
		Omit: func(pointer string) bool { return !isSettable(st, pointer) }}
	for _, ref := range st.References() {
		if target, _ := v.shown(ref.Target); target.Name != "" {
			o.References[object.Pointer(ref.Field)] = ref.Target
		}
	}
	made := storeForm{of: st.Schema()}
	if f, err := form.New(texts.Text(), o); err == nil {
		if empty, err := f.Show([]byte("{}")); err == nil && empty.Usable() {
			made.form, made.facts = f, factsOf(empty)
		}
	}
	v.forms.Store(name, made)
	return made
}

// isSettable reports whether an admin can set what a pointer is to: belfry keeps some fields of an object itself.
func isSettable(st *store.Store, pointer string) bool {
	if strings.Count(pointer, "/") != 1 {
		return true
	}
	name := object.UnescapeToken(pointer[1:])
	return len(st.Rules().SettableByInterceptor(object.Object{name: []byte(`""`)})) > 0
}

// submitted is an object as a page of it has sent it.
type submitted struct {
	editing
	text   string
	failed error // what the form has that no value of its field is
}

// read returns the object of a form: by its fields, if these were edited last.
func (v *objectsView) read(name string, st *store.Store, values url.Values) submitted {
	s := submitted{text: values.Get("text")}
	f := v.formOf(name, st)
	if f == nil {
		return s
	}
	s.Edited = true
	if s.Mode = asJSON; values.Get("mode") != asForm {
		return s
	}
	made, text, problems, err := f.Submit([]byte(values.Get("base")), values)
	if err != nil {
		s.failed = err
		return s
	}
	s.Mode, s.Form, s.text = asForm, made, indent(text)
	if len(problems) > 0 {
		s.failed = &errs.Error{Kind: errs.Invalid, Message: "some fields have values of another kind", Fields: problems}
	}
	return s
}

// object returns the object, if nothing in it is malformed.
func (s submitted) object() (object.Object, error) {
	if s.failed != nil {
		return nil, s.failed
	}
	return object.Parse([]byte(s.text))
}

// withForm adds the form of what is edited, with what is wrong at its fields, and the searches for what its references
// can name.
func (v *objectsView) withForm(p objectPage, st *store.Store) objectPage {
	f := v.formOf(p.Store.Name, st)
	if f == nil || p.Store.Fixed {
		return p
	}
	if p.Mode == "" {
		p.Mode = asForm
	}
	if p.Form == nil {
		if shown, err := f.Show(compacted(p.Text)); err == nil {
			p.Form = shown
		} else {
			p.Mode = asJSON
		}
	}
	if p.Form == nil {
		return p
	}
	var found []errs.Field
	for _, one := range p.Check.Fields {
		found = append(found, one.Field)
	}
	p.Form.Place(found)
	p.Form.Each(func(field *form.Field) {
		for i := range p.Pickers {
			if one := &p.Pickers[i]; field.Kind == form.Reference && field.Pointer == object.Pointer(one.Field) {
				one.Within, field.Data, field.Problems = true, pickerPart{i, one, p.At("pick")}, nil
			}
		}
	})
	return p
}

// pickerPart is a picker in a form.
type pickerPart struct {
	Index  int
	Picker *picker
	Path   string
}

// Fields returns the fields of the form that show what is wrong with their values.
func (p objectPage) Fields() (all []*form.Field) {
	if p.Form != nil {
		p.Form.Each(func(f *form.Field) {
			if f != p.Form.Field && f.Kind != form.Reference {
				all = append(all, f)
			}
		})
	}
	return all
}

// AllWithin reports whether all searches for what references can name are in the form.
func (p objectPage) AllWithin() bool {
	return !slices.ContainsFunc(p.Pickers, func(one picker) bool { return !one.Within })
}

// newText returns the text of a new object: its defaults, where belfry fills them in.
func newText(st *store.Store) string {
	o := object.Object{}
	if filler, ok := st.Schema().(store.Filler); ok {
		filler.Fill(o)
	}
	if o = st.Rules().SettableByInterceptor(o); len(o) == 0 {
		return "{\n  \n}"
	}
	return indent(o.Encode())
}
