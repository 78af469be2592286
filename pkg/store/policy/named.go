package policy

import (
	"slices"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
)

// NamedField is a field of a variable that an expression names, where it does: of object in object.title,
// has(object.title), object["title"] and "title" in object; of linked.author in linked.author.name.
type NamedField struct {
	Variable, Field string
	Line, Column    int

	of int64 // the id of the variable in the expression
}

// NamedFields returns the fields that an expression of a rule or a condition names, in the order of the expression;
// nil if it can't be parsed.
func NamedFields(expression string) []NamedField {
	n := namesIn(expression)
	slices.SortStableFunc(n.found, func(a, b NamedField) int {
		if a.Line != b.Line {
			return a.Line - b.Line
		}
		return a.Column - b.Column
	})
	return n.found
}

// namesIn finds the names in an expression: none if it can't be parsed.
func namesIn(expression string) *naming {
	n := &naming{}
	env, err := environment()
	if err != nil {
		return n
	}
	tree, issues := env.Parse(expression)
	if issues.Err() == nil {
		n.tree = tree.NativeRep()
		n.walk(n.tree.Expr(), nil)
	}
	return n
}

type naming struct {
	tree   *ast.AST
	found  []NamedField
	linked []int64      // the ids of the variable linked
	sized  []NamedField // see SizedFields
}

// walk finds the fields in an expression within which some names are variables of loops.
func (n *naming) walk(e ast.Expr, loops []string) {
	switch e.Kind() {
	case ast.IdentKind:
		if e.AsIdent() == LinkedVariable && !slices.Contains(loops, LinkedVariable) {
			n.linked = append(n.linked, e.ID())
		}
	case ast.SelectKind:
		s := e.AsSelect()
		n.add(e, s.Operand(), s.FieldName(), loops)
		n.walk(s.Operand(), loops)
	case ast.CallKind:
		call := e.AsCall()
		n.addSize(call, loops)
		if args := call.Args(); len(args) == 2 {
			switch call.FunctionName() {
			case operators.Index:
				n.addLiteral(args[1], args[0], loops)
			case operators.In:
				n.addLiteral(args[0], args[1], loops)
			}
		}
		if call.IsMemberFunction() {
			n.walk(call.Target(), loops)
		}
		for _, arg := range call.Args() {
			n.walk(arg, loops)
		}
	case ast.ListKind:
		for _, element := range e.AsList().Elements() {
			n.walk(element, loops)
		}
	case ast.MapKind:
		for _, entry := range e.AsMap().Entries() {
			n.walk(entry.AsMapEntry().Key(), loops)
			n.walk(entry.AsMapEntry().Value(), loops)
		}
	case ast.ComprehensionKind:
		c := e.AsComprehension()
		n.walk(c.IterRange(), loops)
		n.walk(c.AccuInit(), loops)
		inner := append(slices.Clone(loops), c.IterVar(), c.IterVar2(), c.AccuVar())
		n.walk(c.LoopCondition(), inner)
		n.walk(c.LoopStep(), inner)
		n.walk(c.Result(), inner)
	default: // literals
	}
}

func (n *naming) addLiteral(name, of ast.Expr, loops []string) {
	if field, ok := literalName(name); ok {
		n.add(name, of, field, loops)
	}
}

// literalName returns the name in object["title"] and "title" in object.
func literalName(e ast.Expr) (name string, ok bool) {
	if e.Kind() != ast.LiteralKind {
		return "", false
	}
	text, ok := e.AsLiteral().(types.String)
	return string(text), ok
}

func (n *naming) add(at, of ast.Expr, field string, loops []string) {
	variable, root := variableOf(of)
	if variable == "" || slices.Contains(loops, root.AsIdent()) {
		return
	}
	start := n.tree.SourceInfo().GetStartLocation(at.ID())
	if at.Kind() == ast.SelectKind { // whose place is that of the dot, or of has
		if before := n.tree.SourceInfo().GetStartLocation(root.ID()); before.Line() > 0 {
			start = before
		}
	}
	n.found = append(n.found, NamedField{
		Variable: variable, Field: field, Line: start.Line(), Column: start.Column() + 1, of: root.ID(),
	})
}

// variableOf returns the variable that an expression is, object or linked.author, and its first name in the expression.
func variableOf(e ast.Expr) (variable string, root ast.Expr) {
	if reference, ok := linkedReference(e); ok {
		return LinkedVariable + "." + reference, linkedVariableOf(e)
	}
	if e.Kind() == ast.IdentKind {
		return e.AsIdent(), e
	}
	return "", e
}
