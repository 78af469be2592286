package policy

import (
	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
)

// fields are those of the stored object that an expression looks at.
type fields struct {
	names []string
	all   bool // or it can't be told which
}

// LooksAt reports whether the rule of an operation may look at a field of the
// stored object that which says yes to: whether somebody who judges by an
// object without those fields may come to another result.
func (p *Policy) MayRead(op Op, which func(field string) bool) bool {
	looked := fields{}
	if r := p.ruleFor(op); r != nil {
		looked = r.fields
	} else if p.owner {
		looked.names = []string{"public", "user", "uuid"}
	}
	for _, name := range looked.names {
		if which(name) {
			return true
		}
	}
	return looked.all
}

// fieldsOf finds object.name and has(object.name). Any other use of the object
// (an index, a loop over its fields, a comparison) may be of any field.
func fieldsOf(tree *cel.Ast) fields {
	var found fields
	for _, e := range ast.MatchDescendants(ast.NavigateAST(tree.NativeRep()), ast.KindMatcher(ast.IdentKind)) {
		if e.AsIdent() != "object" {
			continue
		}
		if parent, ok := e.Parent(); ok && parent.Kind() == ast.SelectKind {
			found.names = append(found.names, parent.AsSelect().FieldName())
		} else {
			found.all = true
		}
	}
	return found
}
