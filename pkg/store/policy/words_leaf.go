package policy

import (
	"strconv"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/parser"
)

// maxLiteral is the most bytes of a literal in words.
const maxLiteral = 60

func unparsed(tree *ast.AST, x ast.Expr) string {
	text, err := parser.Unparse(x, tree.SourceInfo())
	if err != nil {
		return ""
	}
	return text
}

// leaf returns the words for an expression without operators on conditions.
func (w *wording) leaf(x ast.Expr, negated bool) (saying, bool) {
	switch x.Kind() {
	case ast.IdentKind:
		return w.owner(negated), x.AsIdent() == isOwner
	case ast.SelectKind:
		return w.selected(x, negated)
	case ast.CallKind:
		call := x.AsCall()
		if call.IsMemberFunction() || len(call.Args()) != 2 {
			return saying{}, false
		}
		return w.comparison(call.FunctionName(), call.Args()[0], call.Args()[1], negated)
	}
	return saying{}, false
}

func (w *wording) owner(negated bool) saying {
	switch {
	case w.op == Create && negated: // a user who creates an object owns it
		return saying{who: strangers, when: "the caller is not logged in"}
	case w.op == Create:
		return saying{who: loggedIn, when: "the caller is logged in"}
	case negated:
		return saying{when: "the caller is not the owner"}
	default:
		return saying{who: theOwner, when: "the caller is the owner"}
	}
}

// selected returns the words for a field that is to be true, or to be there.
func (w *wording) selected(x ast.Expr, negated bool) (saying, bool) {
	of := x.AsSelect().Operand()
	if !x.AsSelect().IsTestOnly() {
		return w.is(x, strconv.FormatBool(!negated))
	}
	if of.Kind() != ast.IdentKind || of.AsIdent() != "object" || w.op == Create {
		return saying{}, false // of null there is no has
	}
	if negated {
		return saying{when: "the object has no " + x.AsSelect().FieldName()}, true
	}
	return saying{when: "the object has a " + x.AsSelect().FieldName()}, true
}

// is returns the words for a field with a value.
func (w *wording) is(field ast.Expr, value string) (saying, bool) {
	name, ok := w.named(field)
	if !ok {
		return saying{}, false
	}
	s := saying{when: name + " is " + value}
	if own, ok := fieldOf(field, "user"); ok {
		s.who = usersWhose + own + " is " + value
	}
	return s, true
}

// named returns the words for a field.
func (w *wording) named(x ast.Expr) (string, bool) {
	if x.Kind() != ast.SelectKind || x.AsSelect().IsTestOnly() {
		return "", false
	}
	field := x.AsSelect().FieldName()
	if reference, ok := linkedReference(x.AsSelect().Operand()); ok && x.AsSelect().Operand().Kind() == ast.SelectKind {
		return field + " of the object that " + reference + " names", true
	}
	for _, of := range []struct {
		variable, words string
		known           bool
	}{
		{"user", "the caller's ", true},
		{"object", "the object's ", w.op != Create},
		{"input", "the sent ", w.op == Create || w.op == Update},
	} {
		if _, ok := fieldOf(x, of.variable); ok {
			return of.words + field, of.known
		}
	}
	return "", false
}

// comparison returns the words for a comparison of a field with a literal or with another field.
func (w *wording) comparison(function string, a, b ast.Expr, negated bool) (saying, bool) {
	if negated {
		switch function {
		case operators.Equals:
			function = operators.NotEquals
		case operators.NotEquals:
			function = operators.Equals
		default:
			return saying{}, false
		}
	}
	switch function {
	case operators.Equals, operators.NotEquals:
		if a.Kind() == ast.LiteralKind {
			a, b = b, a
		}
		if s, ok := w.presence(a, b, function == operators.Equals); ok {
			return s, true
		}
		if value, ok := literal(b); ok && function == operators.Equals {
			return w.is(a, value)
		}
		return w.relation(a, b, map[bool]string{true: " is ", false: " is set, but not "}[function == operators.Equals])
	case operators.In:
		return w.membership(a, b)
	case operators.GreaterEquals, operators.Greater, operators.LessEquals, operators.Less:
		if !isNumber(b) {
			return saying{}, false
		}
		return w.relation(a, b, map[string]string{operators.GreaterEquals: " is at least ",
			operators.Greater: " is more than ", operators.LessEquals: " is at most ",
			operators.Less: " is less than "}[function])
	}
	return saying{}, false
}

// presence returns the words for a comparison of the user with null.
func (w *wording) presence(a, b ast.Expr, equal bool) (saying, bool) {
	if a.Kind() != ast.IdentKind || a.AsIdent() != "user" || b.Kind() != ast.LiteralKind ||
		b.AsLiteral() != types.NullValue {
		return saying{}, false
	}
	if equal {
		return saying{who: strangers, when: "the caller is not logged in"}, true
	}
	return saying{who: loggedIn, when: "the caller is logged in"}, true
}

// relation returns the words for a relation of a field to a literal or to another field.
func (w *wording) relation(a, b ast.Expr, word string) (saying, bool) {
	if level, ok := fieldOf(a, sessionVariable); ok && level == sessionAAL {
		return w.level(word, b)
	}
	first, ok := w.named(a)
	second, also := literal(b)
	if !also {
		second, also = w.named(b)
	}
	return saying{when: first + word + second}, ok && also
}

// level returns the words for a level of the session: 2 is the highest.
func (w *wording) level(word string, b ast.Expr) (saying, bool) {
	value, _ := literal(b)
	if value != "2" || word != " is " && word != " is at least " {
		return saying{}, false
	}
	return saying{who: "users logged in with a second factor",
		when: "the caller is logged in with a second factor"}, true
}

// membership returns the words for a in b.
func (w *wording) membership(a, b ast.Expr) (saying, bool) {
	value, isLiteral := literal(a)
	field, isField := w.named(a)
	if b.Kind() == ast.ListKind {
		words, ok := oneOf(b.AsList().Elements())
		if !isField || !ok {
			return saying{}, false
		}
		return w.is(a, words)
	}
	list, ok := w.named(b)
	if !ok || !isLiteral && !isField {
		return saying{}, false
	}
	if !isLiteral {
		value = field
	}
	s := saying{when: list + " contains " + value}
	if own, ok := fieldOf(b, "user"); ok && isLiteral {
		s.who = usersWhose + own + " contains " + value
	}
	return s, true
}

// oneOf returns the words for one of some literals.
func oneOf(all []ast.Expr) (words string, ok bool) {
	for i, one := range all {
		value, ok := literal(one)
		if !ok {
			return "", false
		}
		if i > 0 {
			words += " or "
		}
		words += value
	}
	return words, len(all) > 0 && len(all) <= maxNeeded
}

// literal returns a literal in words: a short one.
func literal(x ast.Expr) (string, bool) {
	if x.Kind() != ast.LiteralKind {
		return "", false
	}
	switch value := x.AsLiteral().(type) {
	case types.String:
		return strconv.Quote(string(value)), len(value) <= maxLiteral
	case types.Bool:
		return strconv.FormatBool(bool(value)), true
	case types.Int:
		return strconv.FormatInt(int64(value), 10), true
	case types.Uint:
		return strconv.FormatUint(uint64(value), 10), true
	case types.Double:
		return strconv.FormatFloat(float64(value), 'g', -1, 64), true
	case types.Null:
		return "null", true
	}
	return "", false
}

func isNumber(x ast.Expr) bool {
	if x.Kind() != ast.LiteralKind {
		return false
	}
	switch x.AsLiteral().(type) {
	case types.Int, types.Uint, types.Double:
		return true
	}
	return false
}
