package policy

import (
	"encoding/json"
	"strings"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/parser"

	"belfry/pkg/object"
)

// Facts are what is known of all users for whom a rule over users holds. nil: nothing is known.
type Facts struct {
	fields object.Object   // values of fields
	texts  map[string]bool // expressions that are true
}

// FactsOf returns what follows for a user from a rule, such as that of admins. It ignores what depends on fields that
// are hidden: rules of stores see users without them.
func FactsOf(expression string, hidden func(field string) bool) *Facts {
	f := &Facts{fields: object.Object{}, texts: map[string]bool{}}
	env, err := userEnvironment()
	if err != nil || strings.TrimSpace(expression) == "" {
		return f
	}
	tree, problems := parse(env, "", expression)
	if len(problems) == 0 {
		f.add(tree.NativeRep(), tree.NativeRep().Expr(), hidden)
	}
	return f
}

func (f *Facts) add(tree *ast.AST, x ast.Expr, hidden func(field string) bool) {
	if x.Kind() == ast.CallKind && x.AsCall().FunctionName() == operators.LogicalAnd {
		for _, operand := range x.AsCall().Args() {
			f.add(tree, operand, hidden)
		}
		return
	}
	for _, e := range ast.MatchDescendants(ast.NavigateExpr(tree, x), ast.KindMatcher(ast.IdentKind)) {
		parent, ok := e.Parent()
		if e.AsIdent() == "user" && (!ok || parent.Kind() != ast.SelectKind || hidden(parent.AsSelect().FieldName())) {
			return
		}
	}
	if text, err := parser.Unparse(x, tree.SourceInfo()); err == nil {
		f.texts[text] = true
	}
	if field, ok := fieldOf(x, "user"); ok && !x.AsSelect().IsTestOnly() {
		f.fields[field] = []byte("true")
		return
	}
	if x.Kind() != ast.CallKind || x.AsCall().FunctionName() != operators.Equals {
		return
	}
	a, b := x.AsCall().Args()[0], x.AsCall().Args()[1]
	if b.Kind() != ast.LiteralKind {
		a, b = b, a
	}
	field, ok := fieldOf(a, "user")
	if !ok || a.AsSelect().IsTestOnly() || b.Kind() != ast.LiteralKind {
		return
	}
	switch value := b.AsLiteral().(type) {
	case types.Bool, types.String: // of numbers several types are equal
		if text, err := json.Marshal(value.Value()); err == nil {
			f.fields[field] = text
		}
	}
}

// hold reports whether an expression of a rule is one that is true.
func (f *Facts) hold(tree *ast.AST, x ast.Expr) bool {
	if f == nil || len(f.texts) == 0 {
		return false
	}
	text, err := parser.Unparse(x, tree.SourceInfo())
	return err == nil && f.texts[text]
}

// value returns the value of a field as JSON; nil if it is not known.
func (f *Facts) value(field string) []byte {
	if f == nil {
		return nil
	}
	return f.fields[field]
}

// user returns a user with only the known fields.
func (f *Facts) user() ref.Val {
	if f == nil {
		return recordOf(object.Object{})
	}
	return recordOf(f.fields)
}
