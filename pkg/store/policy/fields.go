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
	if r := p.ruleFor(op); r != nil {
		return p.mayRead(r, matches)
	}
	return p.ownersRules && (matches("public") || matches(p.owner))
}

// FollowsReferences reports whether the rule of an operation reads linked objects.
func (p *Policy) FollowsReferences(op Op) bool {
	r := p.ruleFor(op)
	return r != nil && len(r.linked) > 0
}

func (p *Policy) mayRead(r *rule, matches func(field string) bool) bool {
	return r.fields.all || r.isOwner && matches(p.owner) || slices.ContainsFunc(r.fields.names, matches)
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
