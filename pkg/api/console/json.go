package console

import (
	"bytes"
	"encoding/json"
	"strings"
)

// maxIndented bounds JSON that is indented for people, in bytes. Indenting deeply nested JSON adds thousands of spaces
// for each byte, so a megabyte would become gigabytes.
const maxIndented = 1 << 20

// indent returns JSON for people. JSON that would become too large is returned on one line, and text that is not JSON
// is returned unchanged. Hidden characters are escaped in both.
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

// indentedSize returns the size of compact JSON after indentation in bytes, or slightly more.
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
