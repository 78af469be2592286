package console

import (
	"bytes"
	"encoding/json"
	"strings"
)

// maxIndented bounds JSON that is indented for people, in bytes. What is nested deeply has thousands of blanks for each byte:
// a megabyte of it would become gigabytes.
const maxIndented = 1 << 20

// indent returns JSON for people. What would be too large is returned on one line, and what is no JSON as it is. Hidden characters are escaped in both.
func indent(text []byte) string {
	if indentedSize(text) > maxIndented {
		return legible(string(text))
	}
	var b bytes.Buffer
	if err := json.Indent(&b, text, "", "  "); err != nil {
		return legible(string(text))
	}
	return legible(b.String())
}

// indentedSize returns how many bytes JSON without blanks has once it is indented, or a few more.
func indentedSize(text []byte) int {
	size, depth, quoted := len(text), 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == ':':
			size++
		case c == ',':
			size += 1 + 2*depth
		case c == '{', c == '[':
			depth++
			size += 1 + 2*depth
		case c == '}', c == ']':
			depth = max(depth-1, 0)
			size += 1 + 2*depth
		}
	}
	return size
}

// readable returns the beginning of what indent returns, as valid text of at most so many bytes.
func readable(data []byte, most int) string {
	text := indent(data)
	if len(text) > most {
		return strings.ToValidUTF8(text[:most], "") + "\n..."
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}
