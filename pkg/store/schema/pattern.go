package schema

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
)

// The shorthands of ECMA 262, in Go's syntax, for use inside a class.
const (
	ecmaSpace    = `\t\n\x0b\f\r \x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}\x{feff}`
	ecmaNotSpace = `\x00-\x08\x0e-\x1f!-\x{9f}\x{a1}-\x{167f}\x{1681}-\x{1fff}\x{200b}-\x{2027}\x{202a}-\x{202e}` +
		`\x{2030}-\x{205e}\x{2060}-\x{2fff}\x{3001}-\x{fefe}\x{ff00}-\x{10ffff}`
	ecmaDot = `[^\n\r\x{2028}\x{2029}]`
)

// patternTranslator writes an ECMA 262 pattern (with the flag u, as JSON Schema
// wants it) in the syntax of Go's regexp, or names the part that Go's syntax lacks.
type patternTranslator struct {
	in  []rune
	at  int
	out strings.Builder
	// repeatable says that a quantifier may follow.
	repeatable bool
}

func translatePattern(source string) (string, error) {
	t := &patternTranslator{in: []rune(source)}
	for t.at < len(t.in) {
		if err := t.term(); err != nil {
			return "", err
		}
	}
	translated := t.out.String()
	// Compiling finds no more, and may take a hundred times as long.
	if _, err := syntax.Parse(translated, syntax.Perl); err != nil {
		var syntaxError *syntax.Error
		if errors.As(err, &syntaxError) {
			return "", fmt.Errorf("%s", syntaxError.Code)
		}
		return "", err
	}
	return translated, nil
}

// programSize measures the cost of a pattern for each byte it is matched with.
func programSize(expression string) int {
	parsed, err := syntax.Parse(expression, syntax.Perl)
	if err != nil {
		return 0
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return 0
	}
	return len(program.Inst)
}

// rest is the unread text, at most n runes of it.
func (t *patternTranslator) rest(n int) string {
	return string(t.in[t.at:min(t.at+n, len(t.in))])
}

// take reads n runes and writes their meaning.
func (t *patternTranslator) take(n int, meaning string, repeatable bool) error {
	t.at += n
	t.out.WriteString(meaning)
	t.repeatable = repeatable
	return nil
}

func (t *patternTranslator) term() error {
	switch c := t.in[t.at]; c {
	case '.':
		return t.take(1, ecmaDot, true)
	case '^', '$', '|':
		return t.take(1, string(c), false)
	case '(':
		return t.group()
	case ')':
		return t.take(1, ")", true)
	case '[':
		return t.class()
	case '\\':
		return t.escape()
	case '*', '+', '?':
		return t.quantifier(1)
	case '{':
		return t.counted()
	case ']', '}':
		return fmt.Errorf(`%q must be written \%c`, c, c)
	default:
		return t.take(1, regexp.QuoteMeta(string(c)), true)
	}
}

// quantifier copies one of n runes, and the ? that makes it lazy.
func (t *patternTranslator) quantifier(n int) error {
	if !t.repeatable {
		return fmt.Errorf("nothing can be repeated before %q", t.rest(n))
	}
	if t.at+n < len(t.in) && t.in[t.at+n] == '?' {
		n++
	}
	return t.take(n, t.rest(n), false)
}

var countForm = regexp.MustCompile(`^\{[0-9]+(,[0-9]*)?\}`)

func (t *patternTranslator) counted() error {
	form := countForm.FindString(t.rest(24))
	if form == "" {
		return errors.New(`"{" must be written \{ unless it begins a count such as {2,5}`)
	}
	return t.quantifier(len(form))
}

func (t *patternTranslator) group() error {
	switch head := t.rest(4); {
	case !strings.HasPrefix(head, "(?"):
		return t.take(1, "(", false)
	case strings.HasPrefix(head, "(?:"):
		return t.take(3, "(?:", false)
	case strings.HasPrefix(head, "(?="), strings.HasPrefix(head, "(?!"):
		return errors.New("lookahead is not supported")
	case strings.HasPrefix(head, "(?<="), strings.HasPrefix(head, "(?<!"):
		return errors.New("lookbehind is not supported")
	case strings.HasPrefix(head, "(?<"):
		return t.take(3, "(?<", false)
	}
	return errors.New(`"(?" must be followed by ":" or by a name in <>`)
}

// escape translates an escape outside a class.
func (t *patternTranslator) escape() error {
	if t.at+1 == len(t.in) {
		return errors.New("a backslash ends it")
	}
	switch c := t.in[t.at+1]; c {
	case 'b', 'B':
		return t.take(2, `\`+string(c), false)
	case 's':
		return t.take(2, "["+ecmaSpace+"]", true)
	case 'S':
		return t.take(2, "["+ecmaNotSpace+"]", true)
	case 'k':
		return errors.New("referring back to a group is not supported")
	default:
		if c >= '1' && c <= '9' {
			return errors.New("referring back to a group is not supported")
		}
	}
	meaning, err := t.atom()
	t.repeatable = true
	t.out.WriteString(meaning.text)
	return err
}

// atom is the meaning of an escape, inside or outside a class: one rune, or a set.
type atom struct {
	text string
	set  bool
}

func runeAtom(r rune) atom { return atom{text: fmt.Sprintf(`\x{%x}`, r)} }

// atom reads an escape that means the same inside and outside a class.
func (t *patternTranslator) atom() (atom, error) {
	c := t.in[t.at+1]
	t.at += 2
	switch c {
	case 'd', 'D', 'w', 'W':
		return atom{text: `\` + string(c), set: true}, nil
	case 't', 'n', 'f', 'r':
		return atom{text: `\` + string(c)}, nil
	case 'v':
		return runeAtom('\v'), nil
	case '0':
		if t.at < len(t.in) && t.in[t.at] >= '0' && t.in[t.at] <= '9' {
			return atom{}, errors.New("octal escapes are not allowed")
		}
		return runeAtom(0), nil
	case 'c':
		return t.control()
	case 'x':
		return t.hex(2)
	case 'u':
		return t.unicode()
	case 'p', 'P':
		return t.property(c)
	}
	if strings.ContainsRune(`^$\.*+?()[]{}|/-`, c) {
		return runeAtom(c), nil
	}
	return atom{}, fmt.Errorf(`\%c means nothing in ECMA 262`, c)
}

func (t *patternTranslator) control() (atom, error) {
	if t.at == len(t.in) || t.in[t.at] > unicode.MaxASCII || !unicode.IsLetter(t.in[t.at]) {
		return atom{}, errors.New(`\c must be followed by a letter`)
	}
	t.at++
	return runeAtom(t.in[t.at-1] % 32), nil
}

func (t *patternTranslator) hex(digits int) (atom, error) {
	r, err := t.hexDigits(digits)
	return runeAtom(r), err
}

func (t *patternTranslator) hexDigits(digits int) (rune, error) {
	text := t.rest(digits)
	value, err := strconv.ParseUint(text, 16, 32)
	if err != nil || len(text) != digits {
		return 0, fmt.Errorf("%d hexadecimal digits are expected, not %q", digits, text)
	}
	t.at += digits
	return rune(value), nil
}

// unicode reads the text after \u: four digits, two such halves of a pair, or any
// number of digits in braces.
func (t *patternTranslator) unicode() (atom, error) {
	if t.rest(1) == "{" {
		digits := strings.IndexByte(t.rest(10), '}') - 1
		if digits < 1 {
			return atom{}, errors.New(`\u{ must be followed by hexadecimal digits and }`)
		}
		t.at++
		r, err := t.hexDigits(digits)
		t.at++
		if err == nil && r > unicode.MaxRune {
			err = errors.New(`\u{} names no character`)
		}
		return runeAtom(r), err
	}
	r, err := t.hexDigits(4)
	if err != nil || !utf16.IsSurrogate(r) {
		return runeAtom(r), err
	}
	if t.rest(2) == `\u` {
		t.at += 2
		low, err := t.hexDigits(4)
		if pair := utf16.DecodeRune(r, low); err == nil && pair != unicode.ReplacementChar {
			return runeAtom(pair), nil
		}
	}
	return atom{}, errors.New("half of a surrogate pair matches no text")
}

// property reads \p{...}. Go knows the general categories and, by another syntax,
// the scripts.
func (t *patternTranslator) property(c rune) (atom, error) {
	text := t.rest(64)
	end := strings.IndexByte(text, '}')
	if !strings.HasPrefix(text, "{") || end < 0 {
		return atom{}, fmt.Errorf(`\%c must be followed by a property in {}`, c)
	}
	t.at += end + 1
	name := text[1:end]
	kind, value, pair := strings.Cut(name, "=")
	_, category := unicode.Categories[name]
	_, alias := unicode.CategoryAliases[name]
	switch {
	case category, alias:
	case pair && (kind == "General_Category" || kind == "gc") && unicode.Categories[value] != nil,
		pair && (kind == "Script" || kind == "sc") && unicode.Scripts[value] != nil:
		name = value
	default:
		return atom{}, fmt.Errorf(`\%c{%s} is not supported`, c, name)
	}
	return atom{text: fmt.Sprintf(`\%c{%s}`, c, name), set: true}, nil
}
