package query

import "belfry/pkg/object"

// AppendExact appends a text that two scalar JSON values have in common if and only if they are equal: strings by
// their characters, numbers by their exact values, however they are written. It reports false for other values: null,
// arrays and objects.
func AppendExact(dst, value []byte) ([]byte, bool) {
	if len(value) == 0 {
		return dst, false
	}
	switch value[0] {
	case 'n', '{', '[':
		return dst, false
	case 't', 'f':
		return append(dst, value[0]), true
	case '"':
		text, ok := object.Text(value)
		return append(append(dst, '"'), text...), ok
	}
	return object.ParseDecimal(value).Append(dst), true
}
