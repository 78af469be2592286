package policy

import (
	"fmt"
	"slices"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"

	"belfry/pkg/object"
)

// UserValues keep the values of rules that depend only on the user, for several objects, such as those of a list. A
// rule like `object.team in user.teams.map(t, t.team)` then evaluates the teams of the user once, and not for each
// object. They are for one user with one session, and not safe for concurrent use.
type UserValues struct {
	user  ref.Val // with the fields that were converted
	parts map[*userPart]ref.Val
}

func (v *UserValues) userOf(o object.Object) ref.Val {
	if v == nil {
		return recordOf(o)
	}
	if v.user == nil {
		v.user = recordOf(o)
	}
	return v.user
}

// userPart is a part of a rule that depends only on the user: a loop over the user's values.
type userPart struct {
	variable string // stands for it in the rest of the rule
	program  cel.Program
}

// errCost is the message of CEL for an evaluation that costs too much.
const errCost = "operation cancelled: actual cost limit exceeded" // CEL's text

// partOf returns the value of a part of a rule. If the part can't be evaluated, the error occurs where the rest of the
// rule uses it, as if it were there.
func (v *variables) partOf(p *userPart) ref.Val {
	if value, ok := v.values.parts[p]; ok {
		return value
	}
	if v.partsCost >= costLimit {
		return types.NewErr(errCost)
	}
	value, details, err := p.program.ContextEval(v.ctx, v)
	if cost := details.ActualCost(); cost != nil {
		v.partsCost += *cost
	}
	if err != nil {
		value = types.WrapErr(err)
	}
	if v.ctx.Err() == nil {
		if v.values.parts == nil {
			v.values.parts = map[*userPart]ref.Val{}
		}
		v.values.parts[p] = value
	}
	return value
}

// withoutParts returns a program for several objects, in which variables stand for the parts that depend only on the
// user. It returns nil without such parts, and for a rule with a loop whose variable has the name of a variable of
// rules: within the loop, that name is not the user's.
func withoutParts(env *cel.Env, tree *ast.AST) (cel.Program, []*userPart, error) {
	rest := ast.Copy(tree)
	for _, e := range ast.MatchDescendants(ast.NavigateAST(rest), ast.KindMatcher(ast.ComprehensionKind)) {
		if c := e.AsComprehension(); isVariable(c.IterVar()) || isVariable(c.IterVar2()) {
			return nil, nil, nil
		}
	}
	var parts []*userPart
	var replace func(e ast.NavigableExpr) error
	replace = func(e ast.NavigableExpr) error {
		if e.Kind() != ast.ComprehensionKind || !knowsUserAlone(e, nil) {
			for _, child := range e.Children() {
				if err := replace(child); err != nil {
					return err
				}
			}
			return nil
		}
		part := ast.Copy(ast.NewCheckedAST(ast.NewAST(e, rest.SourceInfo()), rest.TypeMap(), rest.ReferenceMap()))
		program, err := env.PlanProgram(part, programOptions(cel.InterruptCheckFrequency(checkEvery))...)
		if err != nil {
			return err
		}
		p := &userPart{fmt.Sprintf("@user%d", len(parts)), program}
		parts = append(parts, p)
		rest.SetReference(e.ID(), ast.NewIdentReference(p.variable, nil))
		e.SetKindCase(ast.NewExprFactory().NewIdent(e.ID(), p.variable))
		return nil
	}
	if err := replace(ast.NavigateAST(rest)); err != nil || len(parts) == 0 {
		return nil, nil, err
	}
	program, err := env.PlanProgram(rest, programOptions(cel.InterruptCheckFrequency(checkEvery))...)
	return program, parts, err
}

// knowsUserAlone reports whether an expression refers to nothing but the user, the session, and the variables of loops
// around it that are within the part: those of loops around the part are not there where the part is evaluated.
func knowsUserAlone(e ast.Expr, loops []string) bool {
	all := func(children ...ast.Expr) bool {
		return !slices.ContainsFunc(children, func(child ast.Expr) bool { return !knowsUserAlone(child, loops) })
	}
	switch e.Kind() {
	case ast.LiteralKind:
		return true
	case ast.IdentKind:
		return slices.Contains(loops, e.AsIdent()) || e.AsIdent() == "user" || e.AsIdent() == sessionVariable
	case ast.SelectKind:
		return all(e.AsSelect().Operand())
	case ast.CallKind:
		call := e.AsCall()
		return all(call.Args()...) && (!call.IsMemberFunction() || all(call.Target()))
	case ast.ListKind:
		return all(e.AsList().Elements()...)
	case ast.MapKind:
		for _, entry := range e.AsMap().Entries() {
			if !all(entry.AsMapEntry().Key(), entry.AsMapEntry().Value()) {
				return false
			}
		}
		return true
	case ast.ComprehensionKind:
		c := e.AsComprehension()
		if !all(c.IterRange(), c.AccuInit()) {
			return false
		}
		inside := append(slices.Clone(loops), c.AccuVar())
		if !knowsUserAlone(c.Result(), inside) {
			return false
		}
		inside = append(inside, c.IterVar(), c.IterVar2())
		return knowsUserAlone(c.LoopCondition(), inside) && knowsUserAlone(c.LoopStep(), inside)
	default:
		return false
	}
}
