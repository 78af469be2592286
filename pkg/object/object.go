// Package object holds a JSON object the way belfry stores it: top-level
// fields by name, each value kept as the compact JSON text it arrived in, with its strings in one form: see Canonical.
//
// Values stay text so that a number keeps its digits, an update replaces
// fields without understanding them, and a copy in another object is byte for
// byte the original. Two objects are equal when their encodings are.
package object

import (
	"bytes"
	"encoding/json"
	"slices"
	"sort"

	"github.com/go-json-experiment/json/jsontext"

	"belfry/pkg/errs"
)

// Object maps a top-level field's name to its value as compact JSON text.
// A value is never modified in place: Objects may share values.
type Object map[string]json.RawMessage

// MaxDepth is how many levels of objects and arrays a document may nest,
// the document itself being the first.
const MaxDepth = 64

// Parse reads one JSON object, strictly: UTF-8 without invalid sequences, no duplicate names at any level, no NUL
// characters, at most MaxDepth levels and MaxMembers members, nothing after it. Otherwise the error is an errs.Invalid
// that names the error and its place. A byte order mark of UTF-8 before it is skipped, as RFC 8259 allows: programs on
// Windows write it.
func Parse(data []byte) (Object, error) { return ParseWithin(data, MaxMembers) }

// ParseWithin is Parse of an object that has, with those around each in it, at most so many members.
func ParseWithin(data []byte, members int) (Object, error) {
	data = WithoutMark(data)
	if err := checkText(data, members); err != nil {
		return nil, err
	}
	text, err := jsontext.AppendFormat(make([]byte, 0, len(data)), data, jsontext.PreserveRawStrings(true))
	if err != nil {
		return nil, malformed(data)
	}
	if text[0] != '{' {
		return nil, errs.New(errs.Invalid, "a JSON object is expected, not %s", kindName(text[0]))
	}
	return decode(Canonical(text))
}

// WithoutMark returns a text without a byte order mark of UTF-8 before it.
func WithoutMark(text []byte) []byte { return bytes.TrimPrefix(text, []byte("\xef\xbb\xbf")) }

// Decode reads an object that belfry encoded itself (see Encode), perhaps before strings were stored in one form: its
// values are Canonical. It checks syntax only. The values refer to data, which must not change afterwards.
func Decode(data []byte) (Object, error) { return decode(Canonical(data)) }

// DecodeFields is Decode of some top-level fields, without the others. It reads no further than the last of these. The
// object is into, whose fields it replaces; nil: a new one.
func DecodeFields(into Object, data []byte, names []string) (Object, error) {
	o := into
	if o == nil {
		o = make(Object, len(names))
	}
	clear(o)
	data = Canonical(data)
	err := members(data, func(quoted []byte, start, stop int) bool {
		for _, name := range names {
			if isQuoted(quoted, name) {
				o[name] = json.RawMessage(data[start:stop:stop])
				break
			}
		}
		return len(o) < len(names)
	})
	return o, err
}

func decode(data []byte) (Object, error) {
	// A map that grows while it is filled allocates twice as much. So the fields are counted first, if they are not too
	// many to be remembered.
	var first [24]struct {
		name  string
		value []byte
	}
	var o Object
	n := 0
	err := Each(data, func(name string, value []byte) bool {
		if n < len(first) {
			first[n].name, first[n].value = name, value
			n++
			return true
		}
		if o == nil {
			o = make(Object, 2*n)
		}
		o[name] = json.RawMessage(value)
		return true
	})
	if o == nil {
		o = make(Object, n)
	}
	for _, f := range first[:n] {
		o[f.name] = f.value
	}
	return o, err
}

// Of makes an object of any Go value that marshals to a JSON object.
func Of(v any) (Object, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return nil, errs.Wrap(err, errs.Invalid, "the value can't be written as JSON")
	}
	return Parse(data)
}

// Encode writes the object as compact JSON, uuid first, then by name, so that
// equal objects have equal encodings.
func (o Object) Encode() []byte {
	var room [16]string // that few names need no memory
	names := room[:0]
	size := 2
	for name, value := range o {
		names = append(names, name)
		size += len(name) + len(value) + 4
	}
	slices.SortFunc(names, compareNames)
	buf := append(make([]byte, 0, size+size/8), '{')
	for i, name := range names {
		if i > 0 {
			buf = append(buf, ',')
		}
		buf = AppendString(buf, name)
		buf = append(buf, ':')
		buf = append(buf, o[name]...)
	}
	return append(buf, '}')
}

func compareNames(a, b string) int {
	switch {
	case a == b:
		return 0
	case a == "uuid":
		return -1
	case b == "uuid":
		return 1
	case a < b:
		return -1
	default:
		return 1
	}
}

// MarshalJSON encodes the object like Encode.
func (o Object) MarshalJSON() ([]byte, error) {
	if o == nil {
		return []byte("null"), nil
	}
	return o.Encode(), nil
}

// Text returns the string in a field, and false when the field is absent or
// holds something else.
func (o Object) Text(name string) (string, bool) {
	return Text(o[name])
}

// Set puts a Go value into a field. It panics for a value that has no JSON
// text (a channel, a function), which is a mistake of the program.
func (o Object) Set(name string, v any) {
	data, err := json.Marshal(v)
	if err != nil {
		panic("object: " + err.Error())
	}
	o[name] = Canonical(data)
}

// Clone copies the fields; values are shared.
func (o Object) Clone() Object {
	c := make(Object, len(o)+2)
	for name, value := range o {
		c[name] = value
	}
	return c
}

// Equal reports whether both have the same fields with the same text.
func (o Object) Equal(p Object) bool {
	if len(o) != len(p) {
		return false
	}
	for name, value := range o {
		other, ok := p[name]
		if !ok || !bytes.Equal(value, other) {
			return false
		}
	}
	return true
}

// Names returns the fields' names in order.
func (o Object) Names() []string {
	names := make([]string, 0, len(o))
	for name := range o {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

// Text returns the value of a JSON string, and false for any other JSON value.
func Text(value []byte) (string, bool) {
	if len(value) < 2 || value[0] != '"' || value[len(value)-1] != '"' {
		return "", false
	}
	if inner := value[1 : len(value)-1]; bytes.IndexByte(inner, '\\') < 0 {
		return string(inner), true
	}
	s, ok := AppendText(nil, value)
	return string(s), ok
}

// AppendText appends the value of a JSON string. It reports false for any other JSON value.
func AppendText(dst, value []byte) ([]byte, bool) {
	if len(value) < 2 || value[0] != '"' || value[len(value)-1] != '"' {
		return dst, false
	}
	if inner := value[1 : len(value)-1]; bytes.IndexByte(inner, '\\') < 0 {
		return append(dst, inner...), true
	}
	text, err := jsontext.AppendUnquote(dst, value)
	return text, err == nil
}

// AppendString appends s as a JSON string.
func AppendString(dst []byte, s string) []byte {
	// Only invalid UTF-8 fails, and even then the quoted text with replacement
	// characters has been appended.
	out, _ := jsontext.AppendQuote(dst, s)
	return out
}
