package console

import (
	"fmt"
	"strings"
)

// legible returns a text that others wrote with its hidden characters as JSON escapes them. Controls of the direction
// of text let "photo\u202egnp.exe" be read as another name, and move what is beside it. In JSON the value stays the same, so a text that is edited is, too.
func legible(text string) string {
	if strings.IndexFunc(text, hides) < 0 {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if hides(r) {
			fmt.Fprintf(&b, `\u%04x`, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// hides reports whether a character is a control other than those of lines.
func hides(r rune) bool {
	switch {
	case r == '\n', r == '\t', r == '\r':
		return false
	case r < ' ', r >= 0x7f && r <= 0x9f:
		return true
	case r == 0x061c, r == 0x200e, r == 0x200f, r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069: // the direction
		return true
	}
	return r == 0x2028 || r == 0x2029 || r == 0xfeff // lines and marks that are no characters
}
