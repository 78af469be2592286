// Package ordered has JSON objects that keep the order of their members, for
// documents that people read and that must be byte for byte reproducible.
//
// It is not an ordered-map library because the nested objects keep their order
// and numbers keep their digits too: github.com/wk8/go-ordered-map/v2 decodes
// nested objects into Go maps and numbers into float64, and escapes "<", ">" and
// "&".
package ordered

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// Object is a JSON object. Its values are nil, bool, string, int, json.Number,
// []any, []string, *Object, and json.RawMessage for values that are JSON already. The
// zero Object is empty; a nil one can be read.
type Object struct{ members []Member }

// Member is a member of an object.
type Member struct {
	Name  string
	Value any
}

// Of makes an object of alternating names and values. A member whose value is nil
// is left out, for optional members; Null is a JSON null.
func Of(pairs ...any) *Object {
	o := &Object{}
	for i := 0; i < len(pairs); i += 2 {
		if inner, ok := pairs[i+1].(*Object); pairs[i+1] != nil && (!ok || inner != nil) {
			o.Set(pairs[i].(string), pairs[i+1])
		}
	}
	return o
}

// Number is a JSON number with exactly this text.
func Number(text string) json.Number { return json.Number(text) }

// Null returns null as a value for Of.
func Null() json.RawMessage { return json.RawMessage("null") }

// Len is the number of members.
func (o *Object) Len() int {
	if o == nil {
		return 0
	}
	return len(o.members)
}

// Members returns the members in order. The caller must not change them.
func (o *Object) Members() []Member {
	if o == nil {
		return nil
	}
	return o.members
}

// Has reports whether there is a member of the name.
func (o *Object) Has(name string) bool { return o.at(name) >= 0 }

// Get returns the value of a member, nil if the object lacks it.
func (o *Object) Get(name string) any {
	if i := o.at(name); i >= 0 {
		return o.members[i].Value
	}
	return nil
}

// Object returns the value of a member that is an object, and nil otherwise.
func (o *Object) Object(name string) *Object {
	inner, _ := o.Get(name).(*Object)
	return inner
}

// Set sets the value of a member. A new member is appended.
func (o *Object) Set(name string, value any) {
	if i := o.at(name); i >= 0 {
		o.members[i].Value = value
		return
	}
	o.members = append(o.members, Member{name, value})
}

// Delete removes members.
func (o *Object) Delete(names ...string) {
	o.members = slices.DeleteFunc(o.members, func(m Member) bool { return slices.Contains(names, m.Name) })
}

// Clone returns a shallow copy of the object.
func (o *Object) Clone() *Object { return &Object{members: slices.Clone(o.Members())} }

func (o *Object) at(name string) int {
	return slices.IndexFunc(o.Members(), func(m Member) bool { return m.Name == name })
}

// Value reads any JSON text.
func Value(text []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	v, err := value(d)
	if err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("unexpected data after the JSON value")
	}
	return v, nil
}

func value(d *json.Decoder) (any, error) {
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch token {
	case json.Delim('{'):
		o := &Object{}
		for d.More() {
			name, err := d.Token()
			if err != nil {
				return nil, err
			}
			v, err := value(d)
			if err != nil {
				return nil, err
			}
			o.Set(name.(string), v)
		}
		_, err = d.Token()
		return o, err
	case json.Delim('['):
		list := []any{}
		for d.More() {
			v, err := value(d)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		_, err = d.Token()
		return list, err
	}
	return token, nil
}

// MarshalJSON implements json.Marshaler.
func (o *Object) MarshalJSON() ([]byte, error) { return appendValue(nil, o) }

// Encode returns the object as indented JSON with a final newline.
func (o *Object) Encode() ([]byte, error) {
	text, err := appendValue(nil, o)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if err := json.Indent(&out, text, "", "  "); err != nil {
		return nil, err
	}
	out.WriteByte('\n')
	return out.Bytes(), nil
}

func appendValue(dst []byte, v any) (_ []byte, err error) {
	switch v := v.(type) {
	case *Object:
		if v == nil {
			return append(dst, "null"...), nil
		}
		dst = append(dst, '{')
		for i, m := range v.members {
			if i > 0 {
				dst = append(dst, ',')
			}
			if dst, err = appendPlain(dst, m.Name); err != nil {
				return nil, err
			}
			if dst, err = appendValue(append(dst, ':'), m.Value); err != nil {
				return nil, fmt.Errorf("%s: %w", m.Name, err)
			}
		}
		return append(dst, '}'), nil
	case []any:
		dst = append(dst, '[')
		for i, item := range v {
			if i > 0 {
				dst = append(dst, ',')
			}
			if dst, err = appendValue(dst, item); err != nil {
				return nil, err
			}
		}
		return append(dst, ']'), nil
	default:
		return appendPlain(dst, v)
	}
}

// appendPlain encodes a value as encoding/json does, without escaping HTML. Nearly all
// values of a document are texts.
func appendPlain(dst []byte, v any) ([]byte, error) {
	if text, ok := v.(string); ok {
		// Only invalid UTF-8 is an error, which encoding/json replaces as well.
		dst, _ = jsontext.AppendQuote(dst, text)
		return dst, nil
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return append(dst, bytes.TrimSuffix(out.Bytes(), []byte("\n"))...), nil
}
