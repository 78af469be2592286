package mongostore

import (
	"fmt"
	"strings"

	"belfry/pkg/store/driver"
)

// A key is text, because MongoDB compares bytes by their length first. Each
// byte of a part is written as itself, or as a mark and two hexadecimal digits
// where it is below or above what can be written so:
//
//	' '  the end of a part, below everything else
//	'!'  marks bytes up to '!'
//	'~'  marks bytes from '~' on
//	past is above all keys that continue alike
//
// So keys sort as the lists of their parts do, none runs into the next, and
// most can be read.
const (
	partEnd = ' '
	low     = '!'
	high    = '~'
	past    = "\x7f"
)

const hexDigits = "0123456789abcdef"

// appendPart writes a part of a key without its end.
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

// encodeParts is the text of parts, each with its end.
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

// span is the keys that a query selects: not below lower, and below upper.
type span struct{ lower, upper string }

func spanOf(q driver.Query) span {
	prefix := encodeParts(q.Equal)
	s := span{lower: prefix, upper: prefix + past}
	if q.From != nil {
		s.lower = prefix + string(appendPart(nil, q.From))
	}
	if q.To != nil {
		s.upper = prefix + string(appendPart(nil, q.To)) + past
	}
	return s
}

// keyField is where documents have their keys in an index.
func keyField(ix driver.Index) string {
	kind := ""
	if ix.Multi {
		kind = "m"
	}
	return fmt.Sprintf("k:%s:%d%s", escape(ix.Name), ix.Parts, kind)
}

// escape makes a name safe as a collection's and as a field's: whatever is not
// a letter of ASCII, a digit, '_' or '-' becomes '%' and two digits. A dot would
// lead into a document, and begin what belongs to the system.
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
