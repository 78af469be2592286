package secret

import (
	"strings"
	"unicode"
)

// TypedCode normalizes a code of digits and letters that was typed, or copied from a mail, a page or an app. It removes
// spaces, line breaks, hyphens and invisible characters. It replaces full-width characters and Arabic digits with those
// of ASCII. Such codes are compared only in this form.
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

// TypedToken normalizes a typed token, which may have hyphens. It removes spaces, line breaks and invisible characters.
func TypedToken(text string) string {
	return strings.Map(func(r rune) rune {
		if isGap(r) {
			return -1
		}
		return r
	}, text)
}

// isGap reports whether a character is a result of the display of a text: a space, a line break, or an invisible
// character.
func isGap(r rune) bool { return unicode.IsSpace(r) || unicode.Is(unicode.Cf, r) }
