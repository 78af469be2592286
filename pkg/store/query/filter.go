package query

import (
	"math"
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

// supported ends the message of every rejected filter.
const supported = `supported are field == literal, <, <=, >, >= and field.startsWith("..."), joined by &&`

// startsWith is the one function of a filter.
const startsWith = "startsWith"

// parseFilter reads a filter's conditions, none for an empty one.
func parseFilter(filter string) ([]condition, error) {
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
	return appendConditions(nil, tree)
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

func appendConditions(to []condition, e ast.Expr) ([]condition, error) {
	if e.Kind() != ast.CallKind {
		return nil, unsupported("a condition is expected")
	}
	call := e.AsCall()
	name := call.FunctionName()
	if op, ok := operatorOf(name); ok {
		c, err := comparison(op, call.Args())
		return append(to, c), err
	}
	switch name {
	case startsWith:
		c, err := prefixCondition(call)
		return append(to, c), err
	case operators.LogicalAnd:
		for _, arg := range call.Args() {
			var err error
			if to, err = appendConditions(to, arg); err != nil {
				return nil, err
			}
		}
		return to, nil
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
		return condition{}, unsupported("%s is compared with something that is no literal", field)
	}
	if kind := kindOf(literal); op != equals && kind != '"' && kind != '0' {
		return condition{}, errs.New(errs.Invalid, "filter: %s is compared by order with %s; only numbers and strings have one", field, literal)
	}
	return condition{field: field, op: op, literal: literal}, nil
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
	return condition{field: field, op: hasPrefix, literal: literal}, nil
}

// fieldOf reads a field's name: year, object.year or object["year"].
func fieldOf(e ast.Expr) (string, bool) {
	switch e.Kind() {
	case ast.IdentKind:
		return e.AsIdent(), true
	case ast.SelectKind:
		s := e.AsSelect()
		return s.FieldName(), isObject(s.Operand()) && !s.IsTestOnly()
	case ast.CallKind:
		call := e.AsCall()
		if call.FunctionName() != operators.Index || !isObject(call.Args()[0]) || call.Args()[1].Kind() != ast.LiteralKind {
			return "", false
		}
		name, ok := call.Args()[1].AsLiteral().(types.String)
		return string(name), ok
	default:
		return "", false
	}
}

func isObject(e ast.Expr) bool { return e.Kind() == ast.IdentKind && e.AsIdent() == "object" }

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
