package query

import (
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// quoteAfter returns how many letters are the prefix of the string that begins here, as in r"..."; -1 for no string.
func quoteAfter(text string) int {
	for n := range min(3, len(text)) {
		switch text[n] {
		case '"', '\'':
			return n
		case 'r', 'R', 'b', 'B':
		default:
			return -1
		}
	}
	return -1
}

// quoted reads a string as JSON and CEL write it: between " or ', or three of them.
func (l *lexer) quoted(prefix int) (token, error) {
	t := token{kind: textToken, at: l.at}
	letters := l.in[l.at : l.at+prefix]
	if strings.ContainsAny(letters, "bB") {
		t.kind = bytesToken
	}
	raw := strings.ContainsAny(letters, "rR")
	l.at += prefix
	quote := l.in[l.at : l.at+1]
	if three := strings.Repeat(quote, 3); strings.HasPrefix(l.in[l.at:], three) {
		quote = three
	}
	l.at += len(quote)
	var text strings.Builder
	for {
		rest := l.in[l.at:]
		switch {
		case strings.HasPrefix(rest, quote):
			l.at += len(quote)
			t.text = text.String()
			return t, nil
		case rest == "" || len(quote) == 1 && (rest[0] == '\n' || rest[0] == '\r'):
			return t, l.errorf(t.at, "the string that begins here has no closing %s", quote)
		case rest[0] == '\\' && !raw:
			if err := l.unescape(&text); err != nil {
				return t, err
			}
		default:
			text.WriteByte(rest[0])
			l.at++
		}
	}
}

// escaped are the meanings of the letters after a backslash.
var escaped = map[byte]rune{
	'"': '"', '\'': '\'', '\\': '\\', '/': '/', '`': '`', '?': '?',
	'a': '\a', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t', 'v': '\v',
}

// unescape reads an escape of JSON or CEL.
func (l *lexer) unescape(text *strings.Builder) error {
	rest := l.in[l.at+1:]
	if rest == "" {
		return l.errorf(l.at, "an escape has no end")
	}
	if r, ok := escaped[rest[0]]; ok {
		text.WriteRune(r)
		l.at += 2
		return nil
	}
	from, size, base := 1, 2, 16
	switch rest[0] {
	case 'x', 'X':
	case 'u':
		size = 4
	case 'U':
		size = 8
	case '0', '1', '2', '3':
		from, size, base = 0, 3, 8
	default:
		r, _ := utf8.DecodeRuneInString(rest)
		return l.errorf(l.at, `\%c is no escape; a backslash is \\`, r)
	}
	r, ok := codePoint(rest, from, size, base)
	if !ok {
		return l.errorf(l.at, `an escape after \%c has too few digits`, rest[0])
	}
	used := from + size
	if utf16.IsSurrogate(r) && rest[0] == 'u' && strings.HasPrefix(rest[used:], `\u`) {
		low, _ := codePoint(rest[used:], 2, 4, 16)
		if r = utf16.DecodeRune(r, low); r != utf8.RuneError {
			used += 6
		} else {
			r = 0xd800
		}
	}
	if !utf8.ValidRune(r) {
		return l.errorf(l.at, "an escape is half of a surrogate pair, or no character")
	}
	text.WriteRune(r)
	l.at += 1 + used
	return nil
}

func codePoint(text string, from, size, base int) (rune, bool) {
	if len(text) < from+size {
		return 0, false
	}
	n, err := strconv.ParseUint(text[from:from+size], base, 31)
	return rune(n), err == nil //nolint:gosec // it has 31 bits
}
