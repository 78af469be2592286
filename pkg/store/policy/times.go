package policy

import (
	"slices"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/overloads"
	"cel.dev/cel-go/common/types"

	"belfry/pkg/object"
)

// times are the fields of each object that hold a time, as object.TimeFormat has it; withTimes are the variables that
// are such objects.
var (
	times     = []string{"created", "updated"}
	withTimes = []string{"object", "input", "user", source}
)

// compareTimes changes an expression, before it is checked, so that the times of objects compare as times. Literals in
// any zone and precision would otherwise compare as texts. Comparisons with now, timestamp(...) and sums of them would
// fail.
//
// bare says that fields of the object are also variables, as in computed ones.
func compareTimes(tree *ast.AST, bare bool) {
	c := timeComparer{bare: bare, factory: ast.NewExprFactory(), next: ast.MaxID(tree) + 1}
	ast.PostOrderVisit(tree.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		if e.Kind() == ast.CallKind && !e.AsCall().IsMemberFunction() && len(e.AsCall().Args()) == 2 {
			c.call(e, e.AsCall().FunctionName(), e.AsCall().Args()[0], e.AsCall().Args()[1])
		}
	}))
}

type timeComparer struct {
	bare    bool
	factory ast.ExprFactory
	next    int64 // the id of the next expression that is made
}

func (c *timeComparer) call(e ast.Expr, name string, left, right ast.Expr) {
	switch {
	case name == operators.In && c.isTimeOfObject(left) && right.Kind() == ast.ListKind:
		for _, element := range right.AsList().Elements() {
			if c.literal(element) {
				c.never(element)
			}
		}
	case name == operators.Index:
		c.selects(e, left, right)
	case !slices.Contains(comparisons, name):
	case c.isTimeOfObject(left):
		c.compare(e, name, left, right, false)
	case c.isTimeOfObject(right):
		c.compare(e, name, right, left, true)
	}
}

// never makes a literal one that no time of an object equals.
func (c *timeComparer) never(literal ast.Expr) {
	literal.SetKindCase(c.factory.NewLiteral(literal.ID(), types.String("")))
}

var comparisons = []string{operators.Equals, operators.NotEquals, operators.Less, operators.LessEquals,
	operators.Greater, operators.GreaterEquals}

// isTimeOfObject reports whether an expression is object.created or the like.
func (c *timeComparer) isTimeOfObject(e ast.Expr) bool {
	if e.Kind() == ast.IdentKind {
		return c.bare && slices.Contains(times, e.AsIdent())
	}
	if e.Kind() != ast.SelectKind || e.AsSelect().IsTestOnly() {
		return false
	}
	return isTime(e.AsSelect().Operand(), e.AsSelect().FieldName())
}

func isTime(of ast.Expr, field string) bool {
	if !slices.Contains(times, field) {
		return false
	}
	_, linked := linkedReference(of)
	return linked || of.Kind() == ast.IdentKind && slices.Contains(withTimes, of.AsIdent())
}

// selects changes object["created"] to object.created. CEL takes the former for a timestamp where it is the argument of
// timestamp.
func (c *timeComparer) selects(e ast.Expr, of, index ast.Expr) {
	if index.Kind() != ast.LiteralKind {
		return
	}
	if name, ok := index.AsLiteral().(types.String); ok && isTime(of, string(name)) {
		e.SetKindCase(c.factory.NewSelect(e.ID(), of, string(name)))
	}
}

// compare changes the comparison of a time of an object with another expression. mirrored says that this is on the
// left.
func (c *timeComparer) compare(whole ast.Expr, name string, of, with ast.Expr, mirrored bool) {
	if isTimestamp(with) {
		inner := c.factory.CopyExpr(of)
		inner.RenumberIDs(func(int64) int64 { c.next++; return c.next })
		of.SetKindCase(c.factory.NewCall(of.ID(), overloads.TypeConvertTimestamp, inner))
		return
	}
	between := c.literal(with)
	instead := name
	switch { // a literal between two times that an object can have is now the first of them
	case !between:
	case !mirrored && name == operators.Less, mirrored && name == operators.Greater:
		instead = map[string]string{operators.Less: operators.LessEquals,
			operators.Greater: operators.GreaterEquals}[name]
	case !mirrored && name == operators.GreaterEquals, mirrored && name == operators.LessEquals:
		instead = map[string]string{operators.GreaterEquals: operators.Greater,
			operators.LessEquals: operators.Less}[name]
	case name == operators.Equals || name == operators.NotEquals:
		c.never(with)
	}
	if instead != name {
		args := whole.AsCall().Args()
		whole.SetKindCase(c.factory.NewCall(whole.ID(), instead, args...))
	}
}

// literal changes a literal that is a time to how objects have it, and reports whether it is between two times that
// they can have. Any other text stays: the beginning of one, as in "2026-01", compares right.
func (c *timeComparer) literal(e ast.Expr) (between bool) {
	if e.Kind() != ast.LiteralKind {
		return false
	}
	text, ok := e.AsLiteral().(types.String)
	if !ok {
		return false
	}
	last, exact, err := object.LastTime(string(text))
	if err != nil {
		return false
	}
	e.SetKindCase(c.factory.NewLiteral(e.ID(), types.String(last)))
	return !exact
}

// isTimestamp reports whether an expression is now, a timestamp(...), or a sum or difference with one of them.
func isTimestamp(e ast.Expr) bool {
	switch e.Kind() {
	case ast.IdentKind:
		return e.AsIdent() == "now"
	case ast.CallKind:
		call := e.AsCall()
		switch args := call.Args(); call.FunctionName() {
		case overloads.TypeConvertTimestamp:
			return true
		case operators.Add:
			return isTimestamp(args[0]) || isTimestamp(args[1])
		case operators.Subtract:
			return isTimestamp(args[0]) && !isTimestamp(args[1])
		}
	}
	return false
}
