package query

import (
	"fmt"
	"strings"

	"belfry/pkg/errs"
	"belfry/pkg/object"
)

// field is a field of an index, of a filter or of a sort order.
type field struct {
	name       string // how filters and orders name it: without the direction
	top        string // the top-level field
	sub        string // the field of the object in it; "" for none
	elements   bool   // each element of the array in it
	descending bool
}

func parseField(text string) (f field) {
	f.name, f.descending = strings.CutPrefix(text, "-")
	f.top, f.elements = strings.CutSuffix(f.name, "[]")
	f.top, f.sub, _ = strings.Cut(f.top, ".")
	return f
}

// TopLevel returns the field of objects that a field of an index or a filter is, or is in.
func TopLevel(name string) string { return parseField(name).top }

// IsTopLevel reports whether a field of objects is named as it is: indexes and filters take other names for a field in
// one, for elements or for a direction.
func IsTopLevel(name string) bool { return TopLevel(name) == name }

// MaxElements is how many different elements an array with an index has at most.
const MaxElements = 256

// CheckElements refuses an object with more elements than a caller may have one write index, unless it had the same
// before: stored is the object as it was, nil for a new one.
func CheckElements(indexes []Index, stored, o object.Object) error {
	for _, i := range indexes {
		for _, f := range i.fields() {
			if !f.elements {
				continue
			}
			if n := len(f.parts(f.of(o))); n > MaxElements && !object.SameValue(f.of(stored), f.of(o)) {
				return &errs.Error{Kind: errs.Invalid, Message: "an array with an index has too many elements",
					Fields: []errs.Field{{Pointer: f.pointer(),
						Message: fmt.Sprintf("has %d different elements; at most %d can be "+
							"indexed", n, MaxElements)}}}
			}
		}
	}
	return nil
}

func (f field) pointer() string {
	if f.sub == "" {
		return object.Pointer(f.top)
	}
	return object.Pointer(f.top) + object.Pointer(f.sub)
}

// parts returns the different parts of the elements of an array.
func (f field) parts(array []byte) [][]byte {
	var parts [][]byte
	seen := map[string]bool{}
	object.Elements(array, func(value []byte) bool {
		if part := EncodePart(value); !seen[string(part)] {
			seen[string(part)] = true
			parts = append(parts, part)
		}
		return true
	})
	return parts
}

// within returns the field's value in the value of its top-level field; nil when absent.
func (f field) within(top []byte) []byte {
	if f.sub == "" || top == nil {
		return top
	}
	if top[0] != '{' {
		return nil
	}
	return object.Field(top, f.sub)
}

// of returns the field's value in an object; nil when absent.
func (f field) of(o object.Object) []byte { return f.within(o[f.top]) }

// part encodes a value as the part of a key.
func (f field) part(value []byte) []byte { return f.appendPart(nil, value) }

// appendPart is part, appended to other bytes.
func (f field) appendPart(dst, value []byte) []byte {
	from := len(dst)
	if dst = appendPart(dst, value); f.descending {
		dst = appendInverted(dst[:from], dst[from:])
	}
	return dst
}

// keyParts returns the parts as an index of the field has them, each as the parts of a key.
func (f field) keyParts(parts [][]byte) [][][]byte {
	all := make([][][]byte, len(parts))
	for i, part := range parts {
		if f.descending {
			part = invert(part)
		}
		all[i] = [][]byte{part}
	}
	return all
}

// invert returns a part as appendInverted appends it.
func invert(part []byte) []byte { return appendInverted(make([]byte, 0, len(part)+1), part) }

// appendInverted appends a part so that the order of parts is reversed. The terminator is above
// every inverted byte, so that of two parts that begin alike the longer one comes first:
// no part has a zero byte where another one ends.
// It may be the bytes after dst.
func appendInverted(dst, part []byte) []byte {
	for _, c := range part {
		dst = append(dst, ^c)
	}
	return append(dst, 0xff)
}
