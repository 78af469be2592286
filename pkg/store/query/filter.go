package query

import (
	"slices"
	"strings"
	"unicode/utf8"

	"belfry/pkg/errs"
)

// maxExpression is the most bytes of a filter or a sort order.
const maxExpression = 4 << 10

// maxConditions is how many conditions a filter has at most: each reads the value of its field, which can be as large
// as the object.
const maxConditions = 100

// supported ends the message of every rejected filter.
const supported = `supported are ==, !=, <, <=, >, >= and in between a field and literals, "x" in field for the elements of an array, ` +
	`field.startsWith("x") and has(field), joined by &&, || and !`

// checkText refuses a filter before it is parsed.
func checkText(filter string) error {
	if len(filter) > maxExpression {
		return errs.New(errs.Invalid, "filter: longer than %d bytes", maxExpression)
	}
	if !utf8.ValidString(filter) {
		return errs.New(errs.Invalid, "filter: not valid UTF-8")
	}
	return nil
}

// condition returns the condition that a part is.
func (v part) condition() (*node, error) {
	if v.node != nil {
		return v.node, nil
	}
	switch {
	case v.names != nil:
		name := strings.Join(v.names, ".")
		return nil, unsupported("a condition is expected, not a field alone: write %s == true, or has(%s)", name, name)
	default:
		return nil, unsupported("a condition is expected")
	}
}

// call is a call of a function, of a part if that is not nil.
func call(name string, of *part, args []part) (part, error) {
	switch name {
	case "startsWith":
		n, err := leaf(prefixCondition(of, args))
		return part{node: n}, err
	case "has":
		n, err := leaf(presence(of, args))
		return part{node: n}, err
	default:
		if symbol := joins[strings.ToLower(name)]; symbol != "" && of == nil {
			return part{}, errs.New(errs.Invalid, "filter: write %s instead of %s", symbol, name)
		}
		return part{}, unsupported("%s is not supported: a comparison needs a field and a literal", name)
	}
}

func comparison(op operator, left, right part) (condition, error) {
	field, ok := left.asField()
	if !ok {
		if field, ok = right.asField(); !ok {
			return condition{}, unsupported("a comparison needs a field on one side%s", hintOfNoField(left, right))
		}
		op, right = op.mirrored(), left
	}
	literal := right.literal
	if literal == nil {
		return condition{}, unsupported("%s is compared with %s, which is not a literal%s", field.name, right.display(),
			right.quoted())
	}
	c := condition{field: field, op: op, literals: [][]byte{literal}}
	if field.isTime() {
		return c.timed()
	}
	if kind := kindOf(literal); op != equals && kind != '"' && kind != '0' {
		return condition{}, errs.New(errs.Invalid, "filter: %s is compared by order with %s; only numbers and strings "+
			"have one", field.name, literal)
	}
	return c, nil
}

// hintOfNoField says how a field is written that is taken for something else.
func hintOfNoField(parts ...part) string {
	for _, v := range parts {
		if v.word != "" {
			return `; write a field of the name ` + v.word + ` as object["` + v.word + `"]`
		}
		if len(v.names) > 2 {
			return ", and fields are filtered one level below the object at most"
		}
		if slices.ContainsFunc(v.names, isUnnameable) {
			return ", and fields whose name is empty or has one of . [ ] can't be filtered"
		}
	}
	return ""
}

// display describes a part in a message.
func (v part) display() string {
	switch {
	case v.names != nil:
		return strings.Join(v.names, ".")
	case v.isList:
		return "a list"
	case v.node != nil:
		return "a condition"
	default:
		return v.other
	}
}

// quoted is the correct form of a text without quotes.
func (v part) quoted() string {
	if len(v.names) == 1 {
		return `; write text in quotes: "` + v.names[0] + `"`
	}
	return ""
}

// membership reads field in [literals], or literal in field.
func membership(left, right part) (condition, error) {
	if !right.isList {
		field, ok := right.asField()
		if !ok || left.literal == nil {
			return condition{}, unsupported("in needs a field and a list of literals, or a literal and a field%s",
				hintOfNoField(right))
		}
		field.name += "[]"
		field.elements = true
		return condition{field: field, op: equals, literals: [][]byte{left.literal}}, nil
	}
	field, ok := left.asField()
	if !ok {
		return condition{}, unsupported("in needs a field before a list%s", hintOfNoField(left))
	}
	c := condition{field: field, op: equals, literals: make([][]byte, 0, len(right.list))}
	for _, e := range right.list {
		if e.literal == nil {
			return c, unsupported("the list after %s in has %s, which is not a literal%s", field.name, e.display(),
				e.quoted())
		}
		c.literals = append(c.literals, e.literal)
	}
	if field.isTime() {
		return c.timed()
	}
	return c, nil
}

func presence(of *part, args []part) (condition, error) {
	if of != nil || len(args) != 1 {
		return condition{}, unsupported("has is called otherwise")
	}
	field, ok := args[0].asField()
	if !ok {
		return condition{}, unsupported("has needs a field%s", hintOfNoField(args[0]))
	}
	return condition{field: field, op: present}, nil
}

func prefixCondition(of *part, args []part) (condition, error) {
	if of == nil || len(args) != 1 {
		return condition{}, unsupported("startsWith is called otherwise")
	}
	field, ok := of.asField()
	if !ok {
		return condition{}, unsupported("startsWith needs a field before it%s", hintOfNoField(*of))
	}
	literal := args[0].literal
	if kindOr0(literal) != '"' {
		return condition{}, unsupported("startsWith needs a string")
	}
	return condition{field: field, op: hasPrefix, literals: [][]byte{literal}}, nil
}

// asField reads a field: year, object.year or object["year"], and with .city or ["city"] behind
// it a field of the object in it.
func (v part) asField() (f field, ok bool) {
	names := v.names
	if len(names) > 1 && names[0] == "object" {
		names = names[1:]
	}
	if len(names) == 0 || len(names) > 2 || slices.ContainsFunc(names, isUnnameable) {
		return f, false
	}
	f.name, f.top = strings.Join(names, "."), names[0]
	if len(names) > 1 {
		f.sub = names[1]
	}
	return f, true
}

// isUnnameable reports whether indexes and orders take the name of a field for something else.
func isUnnameable(name string) bool { return name == "" || strings.ContainsAny(name, ".[]") }

func unsupported(format string, args ...any) error {
	e := errs.New(errs.Invalid, "filter: "+format, args...)
	e.Message += "; " + supported
	return e
}
