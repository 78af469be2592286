package console

import (
	"strings"

	"belfry/pkg/api/console/form"
	"belfry/pkg/errs"
	"belfry/pkg/object"
)

// failed sets what is wrong.
func (p *modelFormPage) failed(err error) {
	message, fields := messageOf(err)
	p.Problem = message
	for _, f := range fields {
		key := strings.TrimPrefix(f.Pointer, "/")
		if !p.place(f) && !p.place(errs.Field{Pointer: p.pointerOf(key), Message: f.Message}) {
			p.Problems = append(p.Problems, ModelProblem{Key: key, Message: f.Message})
		}
	}
}

// place puts a fault at the field that it is about, and reports whether there is one.
func (p *modelFormPage) place(f errs.Field) bool {
	return p.Form != nil && f.Pointer != "" && len(p.Form.Place([]errs.Field{f})) == 0
}

// pointerOf returns where the form has a key of the configuration; "" if it does not have it.
func (p *modelFormPage) pointerOf(key string) string {
	if p.pointer == nil {
		return ""
	}
	return p.pointer(key)
}

// inSchema returns a problem of the schema whose part the form is, as a fault of the form. Its message has the place in
// the schema.
func (p *modelFormPage) inSchema(one ModelProblem) errs.Field {
	_, at, found := strings.Cut(one.Message, ": "+p.part+"/")
	keyword, message, more := strings.Cut(at, ": ")
	if p.part == "" || !found || !more {
		return errs.Field{}
	}
	return errs.Field{Pointer: "/" + keyword, Message: message}
}

// placed puts problems of the configuration at the fields that they are about.
func (p *modelFormPage) placed(problems []ModelProblem) {
	p.Problem = "The configuration would have problems, so nothing has changed."
	for _, one := range problems {
		if !p.place(p.inSchema(one)) && !p.place(errs.Field{Pointer: p.pointerOf(one.Key), Message: one.Message}) {
			p.Problems = append(p.Problems, one)
		}
	}
	if len(problems) == 0 {
		p.Problem = ""
	}
}

// Fields returns all fields within the form.
func (p modelFormPage) Fields() (all []*form.Field) {
	if p.Form != nil {
		p.Form.Each(func(f *form.Field) { all = append(all, f) })
		return all[1:] // the first is the form itself
	}
	return nil
}

// pointersUnder returns where a form of some keys has a key of the configuration: under a prefix, a path of keys and
// indexes of lists becomes a pointer.
func pointersUnder(prefix string) func(key string) string {
	return func(key string) string {
		rest, within := strings.CutPrefix(key, prefix+".")
		if !within {
			return ""
		}
		rest = strings.NewReplacer("[", ".", "]", "").Replace(rest)
		var b strings.Builder
		for _, token := range strings.Split(rest, ".") {
			b.WriteString(object.Pointer(token))
		}
		return b.String()
	}
}
