package secret

import (
	"strings"
	"unicode"
)

// TypedCode returns a code of digits and letters as it was made, however it was typed, or copied from a mail, a page or an app: without
// spaces, line breaks, hyphens and what can't be seen, and with digits and letters of ASCII in place of those of full width, and of Arabic
// digits. Such codes are compared in this form alone.
func TypedCode(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case isGap(r) || unicode.Is(unicode.Pd, r) || r == '\u2212': // a minus sign
			return -1
		case '\uff01' <= r && r <= '\uff5e':
			return r - '\uff01' + '!'
		case '\u0660' <= r && r <= '\u0669':
			return r - '\u0660' + '0'
		case '\u06f0' <= r && r <= '\u06f9':
			return r - '\u06f0' + '0'
		default:
			return r
		}
	}, text)
}

// TypedToken returns a token as it was made, which may have hyphens: without spaces, line breaks and what can't be seen.
func TypedToken(text string) string {
	return strings.Map(func(r rune) rune {
		if isGap(r) {
			return -1
		}
		return r
	}, text)
}

// isGap reports whether a character comes of how a text was shown: a space, a line break, or one that can't be seen.
func isGap(r rune) bool { return unicode.IsSpace(r) || unicode.Is(unicode.Cf, r) }
