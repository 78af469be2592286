package policy

import (
	"encoding/json"
	"slices"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
)

// maxNeeded bounds how many values a rule names, each of which may stand for several.
const maxNeeded = 8

// narrower finds the values that objects need if a rule is to hold.
type narrower struct {
	policy *Policy
	env    *cel.Env
	tree   *ast.AST
}

// neededBy returns values of which an object has at least one if an expression is true of it, and false if the
// expression can be true of any object. An operand of || that fails does not make the other one fail.
func (n *narrower) neededBy(e ast.Expr) ([]neededValue, bool) {
	if e.Kind() == ast.LiteralKind {
		return nil, e.AsLiteral() == types.False
	}
	if program, ok := n.withoutObject(e); ok { // it holds for any object, or for none
		return []neededValue{{conditions: []userCondition{{program: program}}}}, true
	}
	switch e.Kind() {
	case ast.IdentKind:
		return []neededValue{n.policy.ownedByUser()}, e.AsIdent() == isOwner
	case ast.SelectKind:
		field, ok := fieldOf(e, "object")
		return []neededValue{{field: field, literal: []byte("true")}}, ok
	case ast.ComprehensionKind:
		return n.neededByExists(e.AsComprehension())
	case ast.CallKind:
		if call := e.AsCall(); len(call.Args()) == 2 {
			return n.neededByCall(call.FunctionName(), call.Args()[0], call.Args()[1])
		}
	}
	return nil, false
}

func (n *narrower) neededByCall(function string, a, b ast.Expr) ([]neededValue, bool) {
	switch function {
	case operators.LogicalOr:
		first, ok := n.neededBy(a)
		second, also := n.neededBy(b)
		all := slices.Concat(first, second)
		return all, ok && also && len(all) <= maxNeeded
	case operators.LogicalAnd:
		return n.neededByBoth(a, b)
	case operators.Equals:
		if one, ok := n.equality(a, b); ok {
			return []neededValue{one}, true
		}
		one, ok := n.equality(b, a)
		return []neededValue{one}, ok
	case operators.In:
		field, ok := fieldOf(a, "object")
		of, also := n.withoutObject(b)
		return []neededValue{{field: field, expression: of, elements: true}}, ok && also
	default:
		return nil, false
	}
}

// neededByBoth returns the values that an object needs if two expressions are to hold: the values that one of them
// needs, under the other one if that depends only on the user.
func (n *narrower) neededByBoth(a, b ast.Expr) ([]neededValue, bool) {
	first, ok := n.neededBy(a)
	second, also := n.neededBy(b)
	switch {
	case ok && also && soleCondition(first) != nil:
		return withCondition(*soleCondition(first), second), true
	case ok && also && soleCondition(second) != nil:
		return withCondition(*soleCondition(second), first), true
	case !ok || also && len(second) < len(first):
		return second, also
	default:
		return first, true
	}
}

// soleCondition returns the condition under which any object is allowed, if that is all there is.
func soleCondition(all []neededValue) *userCondition {
	if len(all) == 1 && all[0].field == "" && len(all[0].conditions) == 1 {
		return &all[0].conditions[0]
	}
	return nil
}

// withCondition returns the values that are needed where one more condition on the user is met.
func withCondition(outer userCondition, all []neededValue) []neededValue {
	within := slices.Clone(all)
	for i, one := range within {
		within[i].conditions = append([]userCondition{outer}, one.conditions...)
	}
	return within
}

// neededByExists returns the values that an object needs if list.exists(x, expression) is to hold, where the list is
// the user's.
func (n *narrower) neededByExists(c ast.ComprehensionExpr) ([]neededValue, bool) {
	isAccu := func(e ast.Expr) bool { return e.Kind() == ast.IdentKind && e.AsIdent() == c.AccuVar() }
	isFalse := c.AccuInit().Kind() == ast.LiteralKind && c.AccuInit().AsLiteral() == types.False
	if c.IterVar2() != "" || !isFalse || !isAccu(c.Result()) || c.LoopStep().Kind() != ast.CallKind ||
		isVariable(c.IterVar()) {
		return nil, false
	}
	body := c.LoopStep().AsCall()
	if body.FunctionName() != operators.LogicalOr || !isAccu(body.Args()[0]) {
		return nil, false
	}
	list, ok := n.withoutObject(c.IterRange())
	if !ok {
		return nil, false
	}
	all, ok := n.neededBy(body.Args()[1])
	return withCondition(userCondition{program: list, variable: c.IterVar()}, all), ok
}

// equality returns the value that object.field has if it is equal to other.
func (n *narrower) equality(field, other ast.Expr) (neededValue, bool) {
	name, ok := fieldOf(field, "object")
	if !ok {
		return neededValue{}, false
	}
	if ofUser, ok := fieldOf(other, "user"); ok {
		return neededValue{field: name, userField: ofUser}, true
	}
	if other.Kind() == ast.LiteralKind {
		switch value := other.AsLiteral().(type) {
		case types.Bool, types.Int, types.Uint, types.Double, types.String:
			literal, err := json.Marshal(value.Value())
			return neededValue{field: name, literal: literal}, err == nil
		default:
			return neededValue{}, false
		}
	}
	of, ok := n.withoutObject(other)
	return neededValue{field: name, expression: of}, ok
}

// withoutObject returns a program of an expression that knows no object: one over the user, the session, the time and
// the variables of loops around it.
func (n *narrower) withoutObject(e ast.Expr) (cel.Program, bool) {
	for _, name := range ast.MatchDescendants(ast.NavigateExpr(n.tree, e), ast.KindMatcher(ast.IdentKind)) {
		switch name.AsIdent() {
		case "object", "input", isOwner, LinkedVariable:
			return nil, false
		}
	}
	part := ast.NewCheckedAST(ast.NewAST(e, n.tree.SourceInfo()), n.tree.TypeMap(), n.tree.ReferenceMap())
	program, err := n.env.PlanProgram(part, programOptions(cel.InterruptCheckFrequency(checkEvery))...)
	return program, err == nil
}

// isVariable reports whether rules know a variable of this name outside of loops.
func isVariable(name string) bool {
	return slices.Contains([]string{"user", "object", "input", "now", sessionVariable, isOwner, LinkedVariable},
		name)
}

// fieldOf returns the field that an expression selects from a variable.
func fieldOf(e ast.Expr, variable string) (string, bool) {
	if e.Kind() != ast.SelectKind || e.AsSelect().IsTestOnly() {
		return "", false
	}
	of := e.AsSelect().Operand()
	return e.AsSelect().FieldName(), of.Kind() == ast.IdentKind && of.AsIdent() == variable
}
