package mongostore

import (
	"fmt"
	"net/url"
	"strings"

	"belfry/pkg/store/driver"
)

// A key is text, because MongoDB compares binary values by length first. Each byte of
// a part is written as is, or as a mark and two hexadecimal digits:
//
//	' '       terminates a part, below everything else
//	'!'       marks bytes up to '!'
//	'~'       marks bytes from '~' on
//	afterAll  is above all keys with the same prefix
//
// In this form keys sort like their lists of parts, no key is a prefix of another, and
// most are readable.
const (
	partEnd  = ' '
	low      = '!'
	high     = '~'
	afterAll = "\x7f"
)

const hexDigits = "0123456789abcdef"

// appendPart appends a part of a key without its terminator.
func appendPart(dst, part []byte) []byte {
	for _, c := range part {
		switch {
		case c <= low:
			dst = append(dst, low, hexDigits[c>>4], hexDigits[c&15])
		case c >= high:
			dst = append(dst, high, hexDigits[c>>4], hexDigits[c&15])
		default:
			dst = append(dst, c)
		}
	}
	return dst
}

// encodeParts returns the text of parts, each with its terminator.
func encodeParts(parts [][]byte) string {
	size := 0
	for _, part := range parts {
		size += len(part) + 1
	}
	dst := make([]byte, 0, size)
	for _, part := range parts {
		dst = append(appendPart(dst, part), partEnd)
	}
	return string(dst)
}

// span is the range of keys that a query selects: from lower to below upper.
type span struct{ lower, upper string }

func spanOf(q driver.Query) span {
	prefix := encodeParts(q.Equal)
	s := span{lower: prefix, upper: prefix + afterAll}
	if q.From != nil {
		s.lower = prefix + string(appendPart(nil, q.From))
	}
	if q.To != nil {
		s.upper = prefix + string(appendPart(nil, q.To))
	}
	return s
}

// keyField returns the name of the field of the keys in an index.
func keyField(ix driver.Index) string {
	kind := ""
	if ix.Multi {
		kind = "m"
	}
	return fmt.Sprintf("k:%s:%d%s", escape(ix.Name), ix.Parts, kind)
}

// escape returns a name that is valid for a collection and a field: bytes other than
// ASCII letters, digits, '_' and '-' become '%' and two hexadecimal digits. A dot would
// address a nested field, and begin the name of a system collection.
func escape(name string) string {
	var b strings.Builder
	for i := range len(name) {
		c := name[i]
		if 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' || c == '-' {
			b.WriteByte(c)
		} else {
			b.Write([]byte{'%', hexDigits[c>>4], hexDigits[c&15]})
		}
	}
	return b.String()
}

// unescape is the reverse of escape; false for what that never makes.
func unescape(escaped string) (name string, ok bool) {
	name, err := url.PathUnescape(escaped)
	return name, err == nil && escape(name) == escaped
}
