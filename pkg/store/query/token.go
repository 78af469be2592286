package query

import (
	"fmt"
	"math/big"
	"strings"
	"unicode"
	"unicode/utf8"

	"belfry/pkg/errs"
)

// tokenKind is the kind of a token of a filter.
type tokenKind uint8

const (
	endToken    tokenKind = iota
	nameToken             // of a field or a function, or a word such as in and true
	quotedToken           // a name in backquotes
	textToken             // a string
	bytesToken            // b"..."
	numberToken
	symbolToken
)

// token is a part of a filter: text is the name, the value of a string, a number as JSON, or the symbol.
type token struct {
	kind tokenKind
	text string
	at   int // where it begins, in bytes
}

func (t token) is(symbol string) bool { return t.kind == symbolToken && t.text == symbol }

// display is the token as a message has it.
func (t token) display() string {
	if t.kind == endToken {
		return "the end"
	}
	return t.text
}

// lexer reads the tokens of a filter.
type lexer struct {
	in string
	at int
}

// symbols are those that tokens have, longer ones first, and those that are written by mistake.
var symbols = []string{"===", "!==", "==", "!=", "<>", "<=", ">=", "=<", "=>", "&&", "||", "<", ">", "!", "(", ")", "[",
	"]", ".", ",", "-", "+", "*", "/", "%", "?", ":", "=", "&", "|", "{", "}"}

// meant is the correct form.
var meant = map[string]string{
	"=": "==", "===": "==", "!==": "!=", "<>": "!=", "=<": "<=", "=>": ">=", "&": "&&", "|": "||",
	"“": `"`, "”": `"`, "„": `"`, "«": `"`, "»": `"`, "‘": `"`, "’": `"`, "´": `"`, "–": "-", "−": "-", "≤": "<=",
	"≥": ">=", "≠": "!=",
}

func (l *lexer) next() (t token, err error) {
	l.skipSpace()
	t.at = l.at
	rest := l.in[l.at:]
	if rest == "" {
		return t, nil
	}
	if size := quoteAfter(rest); size >= 0 {
		return l.quoted(size)
	}
	first, size := utf8.DecodeRuneInString(rest)
	switch {
	case isDigit(rest[0]) || rest[0] == '.' && len(rest) > 1 && isDigit(rest[1]):
		return l.number()
	case first == '_' || unicode.IsLetter(first):
		t.kind, t.text = nameToken, rest[:len(rest)-len(strings.TrimLeftFunc(rest, isNamePart))]
		l.at += len(t.text)
		return t, nil
	case first == '`':
		name, _, closed := strings.Cut(rest[1:], "`")
		if !closed {
			return t, l.errorf(l.at, "the name has no closing `")
		}
		l.at += len(name) + 2
		return token{quotedToken, name, t.at}, nil
	}
	t.kind, t.text = symbolToken, rest[:size]
	for _, s := range symbols {
		if strings.HasPrefix(rest, s) {
			t.text = s
			break
		}
	}
	if instead := meant[t.text]; instead != "" {
		return t, l.errorf(l.at, "write %s instead of %s", instead, t.text)
	}
	if size == len(t.text) && !strings.ContainsAny(t.text, "<>!()[].,-+*/%?:{}") {
		return t, l.errorf(l.at, "unexpected %q", first)
	}
	l.at += len(t.text)
	return t, nil
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isNamePart(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }

func (l *lexer) skipSpace() {
	for l.at < len(l.in) {
		switch {
		case strings.IndexByte(" \t\r\n\f", l.in[l.at]) >= 0:
			l.at++
		case strings.HasPrefix(l.in[l.at:], "//"): // a comment
			line, _, _ := strings.Cut(l.in[l.at:], "\n")
			l.at += len(line)
		default:
			return
		}
	}
}

// number reads a number, exactly.
func (l *lexer) number() (token, error) {
	t := token{kind: numberToken, at: l.at}
	rest := l.in[l.at:]
	if len(rest) > 2 && rest[0] == '0' && (rest[1] == 'x' || rest[1] == 'X') {
		digits := span(rest[2:], "0123456789abcdefABCDEF")
		n, ok := new(big.Int).SetString(digits, 16)
		if !ok {
			return t, l.errorf(l.at, "a number is malformed")
		}
		t.text = n.String()
		l.at += 2 + len(digits)
		return t, l.endNumber(true)
	}
	whole := span(rest, digits)
	fraction, power := "", ""
	rest = rest[len(whole):]
	if len(rest) > 1 && rest[0] == '.' && isDigit(rest[1]) {
		fraction = rest[:1+len(span(rest[1:], digits))]
		rest = rest[len(fraction):]
	}
	if len(rest) > 0 && (rest[0] == 'e' || rest[0] == 'E') {
		sign := 1 + len(span(rest[1:min(2, len(rest))], "+-"))
		n := span(rest[sign:], digits)
		if n == "" {
			return t, l.errorf(l.at, "a number is malformed")
		}
		power = rest[:sign+len(n)]
	}
	l.at += len(whole) + len(fraction) + len(power)
	if whole = strings.TrimLeft(whole, "0"); whole == "" {
		whole = "0"
	}
	t.text = whole + fraction + power
	return t, l.endNumber(fraction+power == "")
}

const digits = "0123456789"

// span returns the beginning of a text that has only these characters.
func span(text, of string) string { return text[:len(text)-len(strings.TrimLeft(text, of))] }

// endNumber skips the mark of an unsigned integer, and refuses characters that no number has.
func (l *lexer) endNumber(integer bool) error {
	if integer && l.at < len(l.in) && (l.in[l.at] == 'u' || l.in[l.at] == 'U') {
		l.at++
	}
	if r, _ := utf8.DecodeRuneInString(l.in[l.at:]); l.at < len(l.in) && isNamePart(r) {
		return l.errorf(l.at, "a number is followed by %q; texts are in quotes, and a field whose name begins with a "+
			"digit is object[\"...\"]", r)
	}
	return nil
}

// errorf makes the error of a filter at an index.
func (l *lexer) errorf(at int, format string, args ...any) *errs.Error {
	return errs.New(errs.Invalid, "filter: at character %d: %s",
		utf8.RuneCountInString(l.in[:at])+1, fmt.Sprintf(format, args...))
}
