package format

import (
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// isRegex is Pattern of ECMA 262 (2025) with the flag u, as JSON Schema wants expressions: they are read, and not run.
// There is no recursion, so that an expression of any depth costs only in proportion to its length.
func isRegex(s string) bool {
	p := expression{rest: s}
	p.groups = []group{{}}
	for p.rest != "" {
		if !p.term() {
			return false
		}
	}
	return len(p.groups) == 1 && p.resolved()
}

// expression is one that is being read.
type expression struct {
	rest   string
	groups []group // that are open, the whole at first
	// repeatable says that a quantifier may follow.
	repeatable bool

	captures, highest int             // groups that capture, and the highest number that refers to one
	names             map[string]bool // of groups
	references        map[string]bool // to names
}

// group is an open group. Two groups of the same name are errors unless they are in different alternatives.
type group struct {
	assertion bool // it can't be repeated
	here      map[string]bool
	elsewhere map[string]bool // in alternatives before
}

func (p *expression) resolved() bool {
	for name := range p.references {
		if !p.names[name] {
			return false
		}
	}
	return p.highest <= p.captures
}

// take reads a prefix if it is there.
func (p *expression) take(prefix string) bool {
	rest, found := strings.CutPrefix(p.rest, prefix)
	p.rest = rest
	return found
}

// next reads one character.
func (p *expression) next() rune {
	r, size := utf8.DecodeRuneInString(p.rest)
	p.rest = p.rest[size:]
	return r
}

func (p *expression) term() bool {
	c := p.next()
	repeatable := p.repeatable
	p.repeatable = false
	switch c {
	case '^', '$':
		return true
	case '|':
		top := &p.groups[len(p.groups)-1]
		top.elsewhere, _ = union(top.elsewhere, top.here)
		top.here = nil
		return true
	case '(':
		return p.open()
	case ')':
		return p.closeGroup()
	case '*', '+', '?':
		p.take("?")
		return repeatable
	case '{':
		return repeatable && p.count()
	case '\\':
		return p.escape()
	case '[':
		p.repeatable = true
		return p.class()
	case ']', '}':
		return false
	default:
		p.repeatable = true
		return true
	}
}

// open reads the text after a parenthesis.
func (p *expression) open() bool {
	added := group{}
	switch {
	case p.take("?="), p.take("?!"), p.take("?<="), p.take("?<!"):
		added.assertion = true
	case p.take("?<"):
		name, ok := p.groupName()
		top := &p.groups[len(p.groups)-1]
		if !ok || top.here[name] {
			return false
		}
		top.here = add(top.here, name)
		p.names = add(p.names, name)
		p.captures++
	case p.take("?:"):
	case p.take("?"):
		if !p.modifiers() {
			return false
		}
	default:
		p.captures++
	}
	p.groups = append(p.groups, added)
	return true
}

// modifiers reads the flags that a group sets and clears, each once.
func (p *expression) modifiers() bool {
	flags, rest, found := strings.Cut(p.rest, ":")
	set, cleared, clears := strings.Cut(flags, "-")
	if !found || len(flags) > len("ims-") || clears && set+cleared == "" {
		return false
	}
	p.rest = rest
	all := set + cleared
	for i, flag := range all {
		if !strings.ContainsRune("ims", flag) || strings.ContainsRune(all[i+1:], flag) {
			return false
		}
	}
	return true
}

func (p *expression) closeGroup() bool {
	last := len(p.groups) - 1
	if last == 0 {
		return false
	}
	closed := p.groups[last]
	p.groups = p.groups[:last]
	p.repeatable = !closed.assertion
	names, _ := union(closed.elsewhere, closed.here)
	around := &p.groups[last-1]
	var twice bool
	around.here, twice = union(around.here, names)
	return !twice
}

// union adds the smaller set to the larger, and reports whether they have a name in common.
func union(a, b map[string]bool) (all map[string]bool, common bool) {
	if len(a) < len(b) {
		a, b = b, a
	}
	for name := range b {
		common = common || a[name]
		a[name] = true
	}
	return a, common
}

func add(to map[string]bool, name string) map[string]bool {
	if to == nil {
		to = map[string]bool{}
	}
	to[name] = true
	return to
}

// count reads a quantifier from after its brace.
func (p *expression) count() bool {
	least := p.digits()
	most := least
	if p.take(",") {
		most = p.digits()
		if most == "" {
			most = least
		}
	}
	if least == "" || !p.take("}") {
		return false
	}
	p.take("?")
	least, most = strings.TrimLeft(least, "0"), strings.TrimLeft(most, "0")
	return len(least) < len(most) || len(least) == len(most) && least <= most
}

func (p *expression) digits() string {
	rest := strings.TrimLeft(p.rest, digits)
	read := p.rest[:len(p.rest)-len(rest)]
	p.rest = rest
	return read
}

// escape reads an escape outside a class from after its backslash.
func (p *expression) escape() bool {
	switch {
	case p.take("b"), p.take("B"):
		return true
	case p.take("k"):
		p.repeatable = true
		if !p.take("<") {
			return false
		}
		name, ok := p.groupName()
		p.references = add(p.references, name)
		return ok
	}
	p.repeatable = true
	if p.rest != "" && p.rest[0] >= '1' && p.rest[0] <= '9' {
		p.highest = max(p.highest, saturated(p.digits()))
		return true
	}
	_, _, ok := p.character()
	return ok
}

// saturated is the value of digits, or more than any expression has groups.
func saturated(digits string) (n int) {
	for _, digit := range digits {
		n = min(n*10+int(digit-'0'), 1<<40)
	}
	return n
}

// class reads a character class from after its bracket.
func (p *expression) class() bool {
	p.take("^")
	for !p.take("]") {
		first, set, ok := p.member()
		if !ok {
			return false
		}
		if !strings.HasPrefix(p.rest, "-") || strings.HasPrefix(p.rest, "-]") {
			continue
		}
		p.take("-")
		last, lastSet, ok := p.member()
		if !ok || set || lastSet || first > last {
			return false
		}
	}
	return true
}

// member reads one character or set of a class.
func (p *expression) member() (r rune, set, ok bool) {
	switch {
	case p.rest == "":
		return 0, false, false
	case !p.take(`\`):
		return p.next(), false, true
	case p.take("b"):
		return '\b', false, true
	case p.take("-"):
		return '-', false, true
	default:
		return p.character()
	}
}

// syntaxChars are those that a backslash makes literal.
const syntaxChars = `^$\.*+?()[]{}|/`

// character reads an escape that means the same inside and outside a class: a character or a set.
func (p *expression) character() (r rune, set, ok bool) {
	if p.rest == "" {
		return 0, false, false
	}
	switch c := p.next(); c {
	case 'd', 'D', 's', 'S', 'w', 'W':
		return 0, true, true
	case 'p', 'P':
		name, rest, found := strings.Cut(p.rest, "}")
		p.rest = rest
		return 0, true, found && strings.HasPrefix(name, "{") && isProperty(name[1:])
	case 't':
		return '\t', false, true
	case 'n':
		return '\n', false, true
	case 'v':
		return '\v', false, true
	case 'f':
		return '\f', false, true
	case 'r':
		return '\r', false, true
	case '0':
		return 0, false, p.digits() == ""
	case 'c':
		letter := p.next()
		return letter % 32, false, letter < utf8.RuneSelf && unicode.IsLetter(letter)
	case 'x':
		r, ok = p.hex(2)
		return r, false, ok
	case 'u':
		r, ok = p.codePoint()
		return r, false, ok
	default:
		return c, false, strings.ContainsRune(syntaxChars, c)
	}
}

func (p *expression) hex(length int) (value rune, ok bool) {
	if length < 1 || len(p.rest) < length || !hexDigits.only(p.rest[:length]) {
		return 0, false
	}
	for _, digit := range strings.ToLower(p.rest[:length]) {
		value = min(value*16+rune(strings.IndexRune("0123456789abcdef", digit)), unicode.MaxRune+1)
	}
	p.rest = p.rest[length:]
	return value, true
}

// codePoint reads the text after \u: four digits, two such halves of a surrogate pair, or digits in braces.
func (p *expression) codePoint() (rune, bool) {
	if p.take("{") {
		r, ok := p.hex(strings.IndexByte(p.rest, '}'))
		return r, ok && r <= unicode.MaxRune && p.take("}")
	}
	r, ok := p.hex(4)
	if ok && utf16.IsSurrogate(r) && strings.HasPrefix(p.rest, `\u`) {
		after := expression{rest: p.rest[2:]}
		low, found := after.hex(4)
		if pair := utf16.DecodeRune(r, low); found && pair != unicode.ReplacementChar {
			p.rest = after.rest
			return pair, true
		}
	}
	return r, ok
}

// groupName reads a name from after its <.
func (p *expression) groupName() (string, bool) {
	var name strings.Builder
	for !p.take(">") {
		if p.rest == "" {
			return "", false
		}
		r := p.next()
		if r == '\\' {
			var ok bool
			if ok = p.take("u"); ok {
				r, ok = p.codePoint()
			}
			if !ok {
				return "", false
			}
		}
		if !isNameStart(r) && (name.Len() == 0 || !isNamePart(r)) {
			return "", false
		}
		name.WriteRune(r)
	}
	return name.String(), name.Len() > 0
}

// isNameStart reports whether an identifier may begin with the character; isNamePart, whether it may also follow.
func isNameStart(r rune) bool {
	return r == '$' ||
		r == '_' || unicode.In(r, unicode.L, unicode.Nl, unicode.Other_ID_Start) &&
		!unicode.In(r, unicode.Pattern_Syntax, unicode.Pattern_White_Space)
}

func isNamePart(r rune) bool {
	return r == nonJoiner || r == joiner ||
		unicode.In(r, unicode.Mn, unicode.Mc, unicode.Nd, unicode.Pc, unicode.Other_ID_Continue)
}
