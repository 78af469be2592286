package format

import (
	"strings"
	"unicode/utf8"
)

const (
	letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	digits  = "0123456789"

	unreserved = letters + digits + "-._~"
	subDelims  = "!$&'()*+,;="
)

// set is a set of ASCII characters.
type set [2]uint64

func setOf(chars string) (s set) {
	for _, c := range []byte(chars) {
		s[c>>6] |= 1 << (c & 63)
	}
	return s
}

func (s set) has(c byte) bool { return c < utf8.RuneSelf && s[c>>6]&(1<<(c&63)) != 0 }

// only reports whether the string has only characters of the set.
func (s set) only(text string) bool {
	for i := range len(text) {
		if !s.has(text[i]) {
			return false
		}
	}
	return true
}

// allows reports whether the string has characters of the set, whole percent-encoded bytes, and others as
// beyond allows; nil: none beyond ASCII.
func (s set) allows(text string, beyond func(r rune) bool) bool {
	for i := 0; i < len(text); {
		switch c := text[i]; {
		case s.has(c):
			i++
		case c == '%':
			if !percentEncoded(text[i:]) {
				return false
			}
			i += 3
		case c < utf8.RuneSelf || beyond == nil:
			return false
		default:
			r, size := utf8.DecodeRuneInString(text[i:])
			if size == 1 || !beyond(r) {
				return false
			}
			i += size
		}
	}
	return true
}

// percentEncoded reports whether the string begins with a percent-encoded byte.
func percentEncoded(s string) bool {
	return len(s) >= 3 && s[0] == '%' && hexDigits.has(s[1]) && hexDigits.has(s[2])
}

var hexDigits = setOf("0123456789abcdefABCDEF")

// isUCSChar is ucschar of RFC 3987, without the characters that only format text of two directions, which its section
// 4.1 forbids.
func isUCSChar(r rune) bool {
	switch {
	case r == 0x200E, r == 0x200F, r >= 0x202A && r <= 0x202E:
		return false
	case r < 0x10000:
		return r >= 0xA0 && r <= 0xD7FF || r >= 0xF900 && r <= 0xFDCF || r >= 0xFDF0 && r <= 0xFFEF
	default:
		return r <= 0xEFFFD && r&0xFFFF <= 0xFFFD && (r < 0xE0000 || r >= 0xE1000)
	}
}

// isPrivate is iprivate of RFC 3987.
func isPrivate(r rune) bool {
	return r >= 0xE000 && r <= 0xF8FF || r >= 0xF0000 && r&0xFFFF <= 0xFFFD
}

func isUCSOrPrivate(r rune) bool { return isUCSChar(r) || isPrivate(r) }

// cutAny is strings.Cut at the first of several bytes.
func cutAny(s, chars string) (before, after string) {
	if i := strings.IndexAny(s, chars); i >= 0 {
		return s[:i], s[i:]
	}
	return s, ""
}
