package policy

import (
	"slices"

	"cel.dev/cel-go/common/ast"
)

// Unnamed returns where an expression uses an object otherwise than by the name of a field: object == input,
// object[input.name]. It may read any field there. The fields that it names are NamedFields. Field is "".
func Unnamed(expression string) (all []NamedField) {
	n := namesIn(expression)
	if n.tree == nil {
		return nil
	}
	named := map[int64]bool{}
	for _, f := range n.found {
		if f.Variable != LinkedVariable {
			named[f.of] = true
		}
	}
	var walk func(e ast.NavigableExpr, loops []string)
	walk = func(e ast.NavigableExpr, loops []string) {
		if e.Kind() == ast.IdentKind {
			name := e.AsIdent()
			if !named[e.ID()] && !slices.Contains(loops, name) && (name == "object" || name == LinkedVariable) {
				at := n.tree.SourceInfo().GetStartLocation(e.ID())
				all = append(all, NamedField{Variable: name, Line: at.Line(), Column: at.Column() + 1, of: e.ID()})
			}
			return
		}
		if e.Kind() == ast.ComprehensionKind { // of which only the body knows the variables
			c := e.AsComprehension()
			loops = append(slices.Clone(loops), c.IterVar(), c.IterVar2(), c.AccuVar())
			for _, child := range e.Children() {
				if id := child.ID(); id == c.IterRange().ID() || id == c.AccuInit().ID() {
					walk(child, loops[:len(loops)-3])
				} else {
					walk(child, loops)
				}
			}
			return
		}
		for _, child := range e.Children() {
			walk(child, loops)
		}
	}
	walk(ast.NavigateAST(n.tree), nil)
	return all
}
