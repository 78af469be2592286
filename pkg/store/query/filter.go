package query

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"cel.dev/cel-go/common"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/parser"

	"belfry/pkg/errs"
	"belfry/pkg/store/object"
)

// maxExpression is the most bytes of a filter or a sort order.
const maxExpression = 4 << 10

// maxConditions is how many conditions a filter has at most: each reads the value of its field, which can be as large as the
// object.
const maxConditions = 100

// supported ends the message of every rejected filter.
const supported = `supported are ==, !=, <, <=, >, >= and in between a field and literals, "x" in field for the elements of an array, ` +
	`field.startsWith("x") and has(field), joined by &&, || and !`

// The functions of a filter.
const (
	startsWith = "startsWith"
	hasField   = "has"
)

// parseFilter reads a filter; nil for an empty one.
func parseFilter(filter string) (*node, error) {
	if strings.TrimSpace(filter) == "" {
		return nil, nil
	}
	if len(filter) > maxExpression {
		return nil, errs.New(errs.Invalid, "filter: longer than %d bytes", maxExpression)
	}
	if !utf8.ValidString(filter) {
		return nil, errs.New(errs.Invalid, "filter: not valid UTF-8")
	}
	tree, err := parseCEL(filter)
	if err != nil {
		return nil, err
	}
	n, err := nodeOf(tree)
	if err == nil && n.size() > maxConditions {
		return nil, errs.New(errs.Invalid, "filter: more than %d conditions; what a field is compared with can be a list, as in field in [1, 2]", maxConditions)
	}
	return n, err
}

// parseCEL parses without macros. The Pratt parser takes microseconds and
// bounds its recursion.
func parseCEL(filter string) (ast.Expr, error) {
	p, err := parser.NewParser(
		parser.EnablePrattParser(true),
		parser.MaxRecursionDepth(50),
		parser.ErrorRecoveryLimit(1),
		parser.ErrorReportingLimit(1),
	)
	if err != nil {
		return nil, err
	}
	tree, problems := p.Parse(common.NewTextSource(filter))
	if all := problems.GetErrors(); len(all) > 0 {
		return nil, errs.New(errs.Invalid, "filter: %s at character %d", all[0].Message, all[0].Location.Column()+1)
	}
	return tree.Expr(), nil
}

func nodeOf(e ast.Expr) (*node, error) {
	if e.Kind() != ast.CallKind {
		return nil, unsupported("a condition is expected")
	}
	call := e.AsCall()
	name := call.FunctionName()
	if op, ok := operatorOf(name); ok {
		return leaf(comparison(op, call.Args()))
	}
	switch name {
	case operators.NotEquals:
		c, err := comparison(equals, call.Args())
		c.negated = true
		return leaf(c, err)
	case operators.In:
		return leaf(membership(call.Args()[0], call.Args()[1]))
	case startsWith:
		return leaf(prefixCondition(call))
	case hasField:
		return leaf(presence(call))
	case operators.LogicalNot, operators.LogicalAnd, operators.LogicalOr:
		n := &node{kind: kindOfOperator(name)}
		for _, arg := range call.Args() {
			inner, err := nodeOf(arg)
			if err != nil {
				return nil, err
			}
			n.args = append(n.args, inner)
		}
		return n, nil
	default:
		return nil, unsupported("%s is not supported", display(name))
	}
}

// operatorOf is a comparison by the name that CEL's parser gives it.
func operatorOf(name string) (op operator, ok bool) {
	switch name {
	case operators.Equals:
		return equals, true
	case operators.Less:
		return less, true
	case operators.LessEquals:
		return lessOrEqual, true
	case operators.Greater:
		return greater, true
	case operators.GreaterEquals:
		return greaterOrEqual, true
	default:
		return 0, false
	}
}

func comparison(op operator, args []ast.Expr) (condition, error) {
	left, right := args[0], args[1]
	field, ok := fieldOf(left)
	if !ok {
		if field, ok = fieldOf(right); !ok {
			return condition{}, unsupported("a comparison needs a field on one side")
		}
		op, right = op.mirrored(), left
	}
	literal, ok := literalOf(right)
	if !ok {
		return condition{}, unsupported("%s is compared with something that is no literal", field.name)
	}
	if kind := kindOf(literal); op != equals && kind != '"' && kind != '0' {
		return condition{}, errs.New(errs.Invalid, "filter: %s is compared by order with %s; only numbers and strings have one", field.name, literal)
	}
	return condition{field: field, op: op, literals: [][]byte{literal}}, nil
}

// membership reads field in [literals], or literal in field.
func membership(left, right ast.Expr) (condition, error) {
	if right.Kind() != ast.ListKind {
		field, ok := fieldOf(right)
		literal, isLiteral := literalOf(left)
		if !ok || !isLiteral {
			return condition{}, unsupported("in needs a field and a list of literals, or a literal and a field")
		}
		field.name += "[]"
		field.elements = true
		return condition{field: field, op: equals, literals: [][]byte{literal}}, nil
	}
	field, ok := fieldOf(left)
	if !ok {
		return condition{}, unsupported("in needs a field before a list")
	}
	c := condition{field: field, op: equals}
	for _, e := range right.AsList().Elements() {
		literal, ok := literalOf(e)
		if !ok {
			return c, unsupported("the list after %s in has something that is no literal", field.name)
		}
		c.literals = append(c.literals, literal)
	}
	return c, nil
}

func presence(call ast.CallExpr) (condition, error) {
	if call.IsMemberFunction() || len(call.Args()) != 1 {
		return condition{}, unsupported("has is called otherwise")
	}
	field, ok := fieldOf(call.Args()[0])
	if !ok {
		return condition{}, unsupported("has needs a field")
	}
	return condition{field: field, op: present}, nil
}

func prefixCondition(call ast.CallExpr) (condition, error) {
	if !call.IsMemberFunction() || len(call.Args()) != 1 {
		return condition{}, unsupported("startsWith is called otherwise")
	}
	field, ok := fieldOf(call.Target())
	if !ok {
		return condition{}, unsupported("startsWith needs a field before it")
	}
	literal, ok := literalOf(call.Args()[0])
	if !ok || kindOf(literal) != '"' {
		return condition{}, unsupported("startsWith needs a string")
	}
	return condition{field: field, op: hasPrefix, literals: [][]byte{literal}}, nil
}

// fieldOf reads a field: year, object.year or object["year"], and with .city or ["city"] behind
// it a field of the object in it.
func fieldOf(e ast.Expr) (f field, ok bool) {
	names, ok := namesOf(e)
	if ok && names[0] == "object" && len(names) > 1 {
		names = names[1:]
	}
	if !ok || len(names) > 2 || slices.ContainsFunc(names, func(name string) bool { return name == "" || strings.ContainsAny(name, ".[]") }) {
		return f, false
	}
	f.name, f.top = strings.Join(names, "."), names[0]
	if len(names) > 1 {
		f.sub = names[1]
	}
	return f, true
}

// namesOf reads a chain of at most three names.
func namesOf(e ast.Expr) ([]string, bool) {
	var operand ast.Expr
	var name string
	switch e.Kind() {
	case ast.IdentKind:
		return []string{e.AsIdent()}, true
	case ast.SelectKind:
		operand, name = e.AsSelect().Operand(), e.AsSelect().FieldName()
	case ast.CallKind:
		call := e.AsCall()
		if call.FunctionName() != operators.Index || call.Args()[1].Kind() != ast.LiteralKind {
			return nil, false
		}
		text, ok := call.Args()[1].AsLiteral().(types.String)
		if !ok {
			return nil, false
		}
		operand, name = call.Args()[0], string(text)
	default:
		return nil, false
	}
	names, ok := namesOf(operand)
	return append(names, name), ok && len(names) < 3
}

// literalOf reads a literal as JSON text.
func literalOf(e ast.Expr) ([]byte, bool) {
	if e.Kind() == ast.CallKind && e.AsCall().FunctionName() == operators.Negate {
		text, ok := literalOf(e.AsCall().Args()[0])
		if !ok || kindOf(text) != '0' || text[0] == '-' {
			return nil, false
		}
		return append([]byte("-"), text...), true
	}
	if e.Kind() != ast.LiteralKind {
		return nil, false
	}
	switch v := e.AsLiteral().(type) {
	case types.String:
		return object.AppendString(nil, string(v)), true
	case types.Int:
		return strconv.AppendInt(nil, int64(v), 10), true
	case types.Uint:
		return strconv.AppendUint(nil, uint64(v), 10), true
	case types.Double:
		f := float64(v)
		return strconv.AppendFloat(nil, f, 'g', -1, 64), !math.IsInf(f, 0) && !math.IsNaN(f)
	case types.Bool:
		return strconv.AppendBool(nil, bool(v)), true
	case types.Null:
		return []byte("null"), true
	default:
		return nil, false
	}
}

// display is an operator as it is written, or a function's name.
func display(name string) string {
	if text, ok := operators.FindReverse(name); ok && text != "" {
		return text
	}
	return strings.Trim(name, "_")
}

func unsupported(format string, args ...any) error {
	e := errs.New(errs.Invalid, "filter: "+format, args...)
	e.Message += "; " + supported
	return e
}
