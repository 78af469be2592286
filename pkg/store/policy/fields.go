package policy

import (
	"slices"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
)

// fields are those of the stored object that an expression reads.
type fields struct {
	names []string
	all   bool // it may read any field
}

// MayRead reports whether the rule of an operation may read a field of the stored
// object that matches: whether evaluating it on an object without those fields can
// give another result.
func (p *Policy) MayRead(op Op, matches func(field string) bool) bool {
	read := fields{}
	if r := p.ruleFor(op); r != nil {
		read = r.fields
		if r.isOwner {
			read.names = append(slices.Clone(read.names), p.owner)
		}
	} else if p.ownersRules {
		read.names = []string{"public", p.owner}
	}
	for _, name := range read.names {
		if matches(name) {
			return true
		}
	}
	return read.all
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
