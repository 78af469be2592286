package policy

import (
	"slices"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/overloads"
)

// SizedFields returns the fields of which an expression takes the size: size(object.comments), user.recipes.size(). In
// the expression of a computed property a field may be a variable itself, size(comments); its Variable is empty.
func SizedFields(expression string) []NamedField { return namesIn(expression).sized }

// addSize adds the field that a call of size has as its argument.
func (n *naming) addSize(call ast.CallExpr, loops []string) {
	if call.FunctionName() != overloads.Size {
		return
	}
	var of ast.Expr
	switch args := call.Args(); {
	case call.IsMemberFunction() && len(args) == 0:
		of = call.Target()
	case !call.IsMemberFunction() && len(args) == 1:
		of = args[0]
	default:
		return
	}
	field, root := NamedField{}, of
	switch of.Kind() {
	case ast.IdentKind:
		field.Field = of.AsIdent()
	case ast.SelectKind:
		field.Field = of.AsSelect().FieldName()
		field.Variable, root = variableOf(of.AsSelect().Operand())
	case ast.CallKind:
		if index := of.AsCall(); index.FunctionName() == operators.Index && len(index.Args()) == 2 {
			field.Field, _ = literalName(index.Args()[1])
			field.Variable, root = variableOf(index.Args()[0])
		}
	}
	if root.Kind() != ast.IdentKind || field.Field == "" || slices.Contains(loops, root.AsIdent()) {
		return
	}
	at := n.tree.SourceInfo().GetStartLocation(root.ID())
	field.Line, field.Column = at.Line(), at.Column()+1
	n.sized = append(n.sized, field)
}
