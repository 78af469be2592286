package query

import (
	"slices"
	"strings"

	"belfry/pkg/errs"
	"belfry/pkg/object"
)

// A filter is parsed by this grammar, a subset of that of CEL, with all strings and numbers of JSON as literals:
//
//	or      = and { "||" and }
//	and     = relation { "&&" relation }
//	relation = unary [ ("==" | "!=" | "<" | "<=" | ">" | ">=" | "in") unary ]
//	unary   = "!" unary | "-" number | member
//	member  = primary { "." name [ "(" [ or { "," or } ] ")" ] | "[" or "]" }
//	primary = literal | name [ "(" ... ")" ] | "(" or ")" | "[" [ or { "," or } ] "]"

// maxLevels is how deep the parts of a filter are within each other.
const maxLevels = 50

// part is a part of a filter: one of these.
type part struct {
	node    *node    // a condition
	names   []string // a field, or a field of a field
	literal []byte   // JSON
	list    []part
	isList  bool
	other   string // an operand of another kind
	word    string // the word that a literal is: true, false or null
}

type filterParser struct {
	lexer
	now   token
	level int
}

// parseFilter reads a filter; nil for an empty one.
func parseFilter(filter string) (*node, error) {
	if strings.TrimSpace(filter) == "" {
		return nil, nil
	}
	if err := checkText(filter); err != nil {
		return nil, err
	}
	p := &filterParser{lexer: lexer{in: filter}}
	if err := p.advance(); err != nil {
		return nil, err
	}
	whole, err := p.or()
	if err != nil {
		return nil, err
	}
	if p.now.kind != endToken {
		return nil, p.unexpected()
	}
	n, err := whole.condition()
	if err == nil && n.size() > maxConditions {
		return nil, errs.New(errs.Invalid, "filter: more than %d conditions; a field can be compared with a list, "+
			"as in field in [1, 2]", maxConditions)
	}
	return n, err
}

func (p *filterParser) advance() (err error) {
	p.now, err = p.next()
	return err
}

// skip advances over a symbol, if it is next.
func (p *filterParser) skip(symbol string) (found bool, err error) {
	if !p.now.is(symbol) {
		return false, nil
	}
	return true, p.advance()
}

// joins are the words by which other languages join conditions.
var joins = map[string]string{"and": "&&", "or": "||", "not": "!"}

// unexpected is the error of a token that can't be where it is.
func (p *filterParser) unexpected() error {
	at := p.now.at
	switch instead := joins[strings.ToLower(p.now.text)]; {
	case p.now.kind == nameToken && instead != "":
		return p.errorf(at, "write %s instead of %s", instead, p.now.text)
	case p.now.is(")") || p.now.is("]"):
		return p.errorf(at, "%s closes nothing", p.now.text)
	case p.now.kind == nameToken:
		return p.errorf(at, "%s is not supported; %s", p.now.text, supported)
	case p.now.is("-"):
		return unsupported(
			`- is not supported: write a field whose name has one as object["first-name"], and a date in quotes`)
	case p.now.kind == symbolToken && strings.ContainsAny(p.now.text, "+*/%?"):
		return unsupported("%s is not supported: a comparison needs a field and a literal", p.now.text)
	case p.now.kind == symbolToken && strings.ContainsAny(p.now.text, "=!<>"):
		return p.errorf(at, "a second comparison: join the two by &&")
	case p.now.kind == endToken:
		return p.errorf(at, "something is missing")
	default:
		return p.errorf(at, "unexpected %s: join conditions by && or ||", p.now.display())
	}
}

// enter counts the levels of parts within each other until leave.
func (p *filterParser) enter() error {
	if p.level++; p.level > maxLevels {
		return errs.New(errs.Invalid, "filter: its parts are more than %d levels deep within each other (recursion)",
			maxLevels)
	}
	return nil
}

func (p *filterParser) leave() { p.level-- }

func (p *filterParser) or() (part, error) { return p.joined("||", or, p.and) }

func (p *filterParser) and() (part, error) { return p.joined("&&", and, p.relation) }

// joined reads the parts that a symbol joins.
func (p *filterParser) joined(symbol string, k kind, inner func() (part, error)) (part, error) {
	first, err := inner()
	if err != nil || !p.now.is(symbol) {
		return first, err
	}
	n := &node{kind: k}
	for next := first; ; {
		arg, err := next.condition()
		if err != nil {
			return part{}, err
		}
		n.args = append(n.args, arg)
		more, err := p.skip(symbol)
		if err != nil || !more {
			return part{node: n}, err
		}
		if next, err = inner(); err != nil {
			return part{}, err
		}
	}
}

// comparisons are their operators. != is the negation of ==.
var comparisons = map[string]operator{"==": equals, "!=": equals, "<": less, "<=": lessOrEqual, ">": greater,
	">=": greaterOrEqual}

func (p *filterParser) relation() (part, error) {
	left, err := p.unary()
	if err != nil {
		return part{}, err
	}
	symbol := p.now.text
	op, compares := comparisons[symbol]
	switch {
	case p.now.kind == symbolToken && compares:
	case p.now.kind == nameToken && symbol == "in":
	case p.now.kind == nameToken && left.node == nil && len(left.names) == 1 && strings.EqualFold(left.names[0], "not"):
		return part{}, p.errorf(p.now.at, "write !(...) instead of not")
	default:
		return left, nil
	}
	if err := p.advance(); err != nil {
		return part{}, err
	}
	right, err := p.unary()
	if err != nil {
		return part{}, err
	}
	var c condition
	if symbol == "in" {
		c, err = membership(left, right)
	} else {
		c, err = comparison(op, left, right)
		c.negated = symbol == "!="
	}
	n, err := leaf(c, err)
	return part{node: n}, err
}

func (p *filterParser) unary() (part, error) {
	if err := p.enter(); err != nil {
		return part{}, err
	}
	defer p.leave()
	at := p.now.at
	if negates, err := p.skip("!"); err != nil {
		return part{}, err
	} else if negates {
		inner, err := p.unary()
		if err != nil {
			return part{}, err
		}
		if inner.node == nil && (inner.names != nil || inner.literal != nil) {
			return part{}, p.errorf(at, "! needs a condition in parentheses, as in !(year == 1)")
		}
		arg, err := inner.condition()
		return part{node: &node{kind: not, args: []*node{arg}}}, err
	}
	if negative, err := p.skip("-"); err != nil {
		return part{}, err
	} else if negative {
		number, err := p.member()
		if err == nil && (number.literal == nil || kindOf(number.literal) != '0' || number.literal[0] == '-') {
			err = unsupported("- is not supported but in front of a number")
		}
		return part{literal: append([]byte("-"), number.literal...)}, err
	}
	return p.member()
}

// member reads a value with its selections and calls.
func (p *filterParser) member() (part, error) {
	value, err := p.primary()
	for err == nil {
		switch {
		case p.now.is("."):
			value, err = p.selected(value)
		case p.now.is("["):
			value, err = p.indexed(value)
		default:
			return value, nil
		}
	}
	return part{}, err
}

func (p *filterParser) selected(of part) (part, error) {
	if err := p.advance(); err != nil {
		return part{}, err
	}
	name := p.now.text
	if p.now.kind != nameToken && p.now.kind != quotedToken {
		return part{}, p.errorf(p.now.at,
			`the name of a field is missing; write one with other characters as object["first-name"]`)
	}
	if err := p.advance(); err != nil {
		return part{}, err
	}
	if p.now.is("(") {
		args, err := p.list("(", ")")
		if err != nil {
			return part{}, err
		}
		return call(name, &of, args)
	}
	return of.field(name), nil
}

func (p *filterParser) indexed(of part) (part, error) {
	index, err := p.list("[", "]")
	if err != nil {
		return part{}, err
	}
	if len(index) != 1 || kindOr0(index[0].literal) != '"' {
		return part{}, unsupported(
			`[...] is not supported but for the name of a field, as in object["first-name"], or a list after in`)
	}
	name, _ := object.Text(index[0].literal)
	return of.field(name), nil
}

func kindOr0(literal []byte) byte {
	if literal == nil {
		return 0
	}
	return kindOf(literal)
}

// field is a field in another one.
func (v part) field(name string) part {
	if v.names == nil {
		return part{other: "a field of something that is no field"}
	}
	return part{names: append(slices.Clip(v.names), name)}
}

func (p *filterParser) primary() (part, error) {
	t := p.now
	switch {
	case t.is("("):
		return p.parentheses()
	case t.is("["):
		all, err := p.list("[", "]")
		return part{list: all, isList: true}, err
	case t.kind == symbolToken, t.kind == endToken:
		return part{}, p.missing()
	}
	if err := p.advance(); err != nil {
		return part{}, err
	}
	switch t.kind {
	case textToken:
		return part{literal: object.AppendString(nil, t.text)}, nil
	case numberToken:
		return part{literal: []byte(t.text)}, nil
	case bytesToken:
		return part{other: "bytes"}, nil
	case quotedToken:
		return part{names: []string{t.text}}, nil
	}
	switch {
	case p.now.is("("):
		args, err := p.list("(", ")")
		if err != nil {
			return part{}, err
		}
		return call(t.text, nil, args)
	case t.text == "true", t.text == "false", t.text == "null":
		return part{literal: []byte(t.text), word: t.text}, nil
	case t.text == "in":
		return part{}, p.errorf(t.at, `in is an operator; write a field of this name as object["in"]`)
	}
	return part{names: []string{t.text}}, nil
}

// missing is the error of a token where a value begins.
func (p *filterParser) missing() error {
	if p.now.kind == symbolToken && strings.ContainsAny(p.now.text, "{}") {
		return unsupported("%s is not supported", p.now.text)
	}
	return p.errorf(p.now.at, "a field or a value is missing before %s", p.now.display())
}

func (p *filterParser) parentheses() (part, error) {
	open := p.now.at
	if err := p.advance(); err != nil {
		return part{}, err
	}
	inner, err := p.or()
	if err != nil {
		return part{}, err
	}
	if p.now.kind == endToken {
		return part{}, p.errorf(open, "this ( is not closed")
	}
	closed, err := p.skip(")")
	if err == nil && !closed {
		err = p.unexpected()
	}
	return inner, err
}

// listed is how many values a list that begins here has, as far as the next bracket: nested lists do not count the same
// values again. A list that grew value by value would take several times as much memory.
func (p *filterParser) listed() int {
	rest := p.in[min(p.now.at, len(p.in)):]
	if end := strings.IndexAny(rest, "[]()"); end >= 0 {
		rest = rest[:end]
	}
	return min(strings.Count(rest, ","), len(rest)/2) + 1 // each value has a character and a comma
}

// list reads values between two symbols.
func (p *filterParser) list(open, end string) (all []part, err error) {
	at := p.now.at
	if err := p.advance(); err != nil {
		return nil, err
	}
	all = make([]part, 0, p.listed())
	for {
		if closed, err := p.skip(end); closed || err != nil {
			return all, err
		}
		one, err := p.or()
		if err != nil {
			return nil, err
		}
		all = append(all, one)
		if p.now.kind == endToken {
			return nil, p.errorf(at, "this %s is not closed", open)
		}
		if comma, err := p.skip(","); err != nil {
			return nil, err
		} else if !comma && !p.now.is(end) {
			return nil, p.unexpected()
		}
	}
}
