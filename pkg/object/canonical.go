package object

import (
	"bytes"
	"unicode/utf16"
	"unicode/utf8"
)

// Canonical returns a JSON text whose syntax is right with its strings, names included, in the one form in which belfry
// stores them: only characters that JSON must escape are escaped, and in the shortest way, as AppendString does.
// Everything else stays. A text without escapes that could be left out is returned as it is, which takes one search.
func Canonical(text []byte) []byte {
	at, size := needlessEscape(text, 0)
	if at < 0 {
		return text
	}
	shorter := make([]byte, 0, len(text))
	from := 0
	for at >= 0 {
		shorter = appendUnescaped(append(shorter, text[from:at]...), text[at:at+size])
		from = at + size
		at, size = needlessEscape(text, from)
	}
	return append(shorter, text[from:]...)
}

// Canonicalize replaces the values of an object that a program may have made by their Canonical form.
func (o Object) Canonicalize() {
	for name, value := range o {
		if bytes.IndexByte(value, '\\') >= 0 {
			o[name] = Canonical(value)
		}
	}
}

// needlessEscape finds the first escape from an index on that Canonical writes otherwise, and how many bytes it has; -1
// for none. Backslashes are only in strings.
func needlessEscape(text []byte, from int) (at, size int) {
	for {
		next := bytes.IndexByte(text[from:], '\\')
		if next < 0 || from+next+1 >= len(text) {
			return -1, 0
		}
		at = from + next
		switch text[at+1] {
		case '/':
			return at, 2
		case 'u':
			if len(text) < at+escape {
				return -1, 0
			}
			c, ok := CodeUnit(text[at:])
			if ok && !mustEscape(text[at:at+escape], c) {
				return at, escape + len(lowSurrogate(c, text[at+escape:]))
			}
			from = at + escape
		default:
			from = at + 2
		}
	}
}

// escape is how many bytes an escape has that names a code unit.
const escape = len(`\u0000`)

// mustEscape reports whether the escape of a code unit is how AppendString writes it.
func mustEscape(text []byte, c rune) bool {
	return c < ' ' && shortEscape(c) == 0 && (text[5] < 'A' || text[5] > 'F')
}

// shortEscape is the letter by which a control character is escaped, 0 for none.
func shortEscape(c rune) byte {
	switch c {
	case '\b':
		return 'b'
	case '\t':
		return 't'
	case '\n':
		return 'n'
	case '\f':
		return 'f'
	case '\r':
		return 'r'
	default:
		return 0
	}
}

// appendUnescaped appends the character of an escape that needlessEscape has found.
func appendUnescaped(dst, text []byte) []byte {
	if text[1] == '/' {
		return append(dst, '/')
	}
	c, _ := CodeUnit(text)
	if len(text) > escape {
		low, _ := CodeUnit(text[escape:])
		c = utf16.DecodeRune(c, low)
	}
	switch short := shortEscape(c); {
	case short != 0:
		return append(dst, '\\', short)
	case c < ' ':
		return append(dst, '\\', 'u', '0', '0', "0123456789abcdef"[c>>4], "0123456789abcdef"[c&15])
	case c == '"' || c == '\\':
		return append(dst, '\\', byte(c))
	default:
		return utf8.AppendRune(dst, c) // half of a pair, which Parse refuses, is U+FFFD
	}
}

// lowSurrogate returns the escape that follows the high half of a surrogate pair, if it is the low one.
func lowSurrogate(high rune, text []byte) []byte {
	if low, ok := CodeUnit(text); ok && utf16.DecodeRune(high, low) != utf8.RuneError {
		return text[:escape]
	}
	return nil
}

// CodeUnit returns the code unit of the escape \uXXXX at the beginning of a text, and false without one.
func CodeUnit(text []byte) (c rune, ok bool) {
	if len(text) < escape || text[0] != '\\' || text[1] != 'u' {
		return 0, false
	}
	for _, digit := range text[2:escape] {
		switch {
		case '0' <= digit && digit <= '9':
			c = c<<4 | rune(digit-'0')
		case 'a' <= digit && digit <= 'f':
			c = c<<4 | rune(digit-'a'+10)
		case 'A' <= digit && digit <= 'F':
			c = c<<4 | rune(digit-'A'+10)
		default:
			return 0, false
		}
	}
	return c, true
}
