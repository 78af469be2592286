package schema

import (
	"encoding/json"
	"slices"
	"strconv"
)

// canonical appends a form of v that is the same for every value JSON Schema calls equal:
// numbers by their mathematical value, objects independently of the order of their
// members. It stops, false, once the form is longer than limit, or when a number cannot
// be read.
func canonical(dst []byte, v any, limit int) ([]byte, bool) {
	var ok bool
	switch v := v.(type) {
	case nil:
		dst = append(dst, 'n')
	case bool:
		dst = strconv.AppendBool(dst, v)
	case string:
		dst = canonicalString(dst, v)
	case json.Number:
		var n number
		if n, ok = parseNumber(v.String()); !ok {
			return dst, false
		}
		dst = append(dst, '#')
		if n.negative {
			dst = append(dst, '-')
		}
		dst = append(append(dst, n.digits...), 'e')
		dst = strconv.AppendInt(dst, int64(n.exponent), 10)
		dst = append(dst, ';')
	case []any:
		dst = append(dst, '[')
		for _, item := range v {
			if dst, ok = canonical(dst, item, limit); !ok {
				return dst, false
			}
		}
		dst = append(dst, ']')
	case map[string]any:
		dst = append(dst, '{')
		for _, name := range sortedNames(v) {
			dst = canonicalString(dst, name)
			if dst, ok = canonical(dst, v[name], limit); !ok {
				return dst, false
			}
		}
		dst = append(dst, '}')
	}
	return dst, len(dst) <= limit
}

// canonicalString leads with the length, so that no string can pass for the end
// of one and the start of another.
func canonicalString(dst []byte, s string) []byte {
	dst = strconv.AppendInt(append(dst, '"'), int64(len(s)), 10)
	return append(append(dst, ':'), s...)
}

func sortedNames(v map[string]any) []string {
	names := make([]string, 0, len(v))
	for name := range v {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
