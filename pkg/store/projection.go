package store

import (
	"slices"
	"strings"
	"unicode/utf8"

	"belfry/pkg/errs"
	"belfry/pkg/object"
)

// Limits of a projection.
const (
	maxProjection       = 4 << 10 // bytes
	maxProjectionFields = 100
)

// Projection is a choice of fields of objects: title, or address.city for a field of the object in a field and of
// each object in an array. It keeps the uuid always. nil keeps everything.
type Projection struct {
	fields []projectedField
}

// projectedField is a field that a projection keeps.
type projectedField struct {
	name string
	subs []string // the fields of the object in it; nil: the whole value
}

// ParseProjection reads a projection: names separated by commas, nil for none. A field that an object does not
// have, or that its reader may not see, is no error: it is absent.
func ParseProjection(text string) (*Projection, error) {
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	if len(text) > maxProjection || !utf8.ValidString(text) {
		return nil, errs.New(errs.Invalid, "fields: at most %d bytes of UTF-8 are allowed", maxProjection)
	}
	p := &Projection{fields: []projectedField{{name: "uuid"}}}
	count := 0
	for name := range strings.SplitSeq(text, ",") {
		name = strings.TrimSpace(name)
		top, sub, nested := strings.Cut(name, ".")
		switch count++; {
		case top == "" || nested && sub == "":
			return nil, errs.New(errs.Invalid,
				`fields: a name is missing; for instance "title,author.name" is expected`)
		case strings.Contains(sub, "."):
			return nil, errs.New(errs.Invalid,
				"fields: %s: only one level below a field can be chosen, as in address.city", name)
		case count > maxProjectionFields:
			return nil, errs.New(errs.Invalid, "fields: more than %d are named", maxProjectionFields)
		}
		p.add(top, sub)
	}
	return p, nil
}

// add adds a field; one that is added whole stays so.
func (p *Projection) add(top, sub string) {
	at := slices.IndexFunc(p.fields, func(f projectedField) bool { return f.name == top })
	switch {
	case at < 0 && sub == "":
		p.fields = append(p.fields, projectedField{name: top})
	case at < 0:
		p.fields = append(p.fields, projectedField{name: top, subs: []string{sub}})
	case sub == "":
		p.fields[at].subs = nil
	case p.fields[at].subs != nil:
		p.fields[at].subs = append(p.fields[at].subs, sub)
	}
}

// nested returns the projection of the object that a field names: its parts, where these are chosen.
func (p *Projection) nested(field string) *Projection {
	if p == nil {
		return nil
	}
	for _, f := range p.fields {
		if f.name == field && f.subs != nil {
			inner := &Projection{fields: []projectedField{{name: "uuid"}}}
			for _, sub := range f.subs {
				inner.add(sub, "")
			}
			return inner
		}
	}
	return nil
}

// withWhole returns the projection with the whole value of a field, if it has parts of it.
func (p *Projection) withWhole(field string) *Projection {
	if p.nested(field) == nil {
		return p
	}
	changed := &Projection{fields: slices.Clone(p.fields)}
	changed.add(field, "")
	return changed
}

// Has reports whether the projection keeps a field, or a part of it.
func (p *Projection) Has(field string) bool {
	return p == nil || slices.ContainsFunc(p.fields, func(f projectedField) bool { return f.name == field })
}

// Apply returns an encoded object with the chosen fields alone.
func (p *Projection) Apply(body []byte) []byte {
	if p == nil {
		return body
	}
	out := append(make([]byte, 0, 256), '{')
	_ = object.Each(body, func(name string, value []byte) bool {
		if at := slices.IndexFunc(p.fields, func(f projectedField) bool { return f.name == name }); at >= 0 {
			if value = p.fields[at].project(value); value != nil {
				out = appendField(out, name, value)
			}
		}
		return true
	})
	return append(out, '}')
}

// project returns the projected part of the field's value, or nil.
func (f projectedField) project(value []byte) []byte {
	switch {
	case f.subs == nil:
		return value
	case value[0] == '{':
		return f.projectObject(value)
	case value[0] != '[':
		return nil
	}
	out := []byte{'['}
	object.Elements(value, func(element []byte) bool {
		if element[0] == '{' {
			if len(out) > 1 {
				out = append(out, ',')
			}
			out = append(out, f.projectObject(element)...)
		}
		return true
	})
	return append(out, ']')
}

func (f projectedField) projectObject(value []byte) []byte {
	return object.Without(value, func(name string) bool { return !slices.Contains(f.subs, name) })
}

// appendField appends a field to an encoded object that is not closed yet.
func appendField(out []byte, name string, value []byte) []byte {
	if len(out) > 1 {
		out = append(out, ',')
	}
	out = object.AppendString(out, name)
	return append(append(out, ':'), value...)
}
