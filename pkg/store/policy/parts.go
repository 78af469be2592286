package policy

import (
	"context"
	"errors"
	"slices"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
)

// Part is a part of a rule: an operand of &&, ||, ! or ?: without such an operator itself.
type Part struct {
	Text    string `json:"text"`
	Value   string `json:"value,omitempty"`   // true, false or error; "" if it is private
	Decides bool   `json:"decides,omitempty"` // with others, if there are several: the rest does not matter
	Private bool   `json:"private,omitempty"` // it reads a private field, so the value is left out

	reads []NamedField
}

// maxParts bounds the parts of a rule that are explained.
const maxParts = 32

// explainedPart is a node of the operators over the parts of a rule.
type explainedPart struct {
	function string // "" for a part
	operands []*explainedPart
	result   results
	part     int // its index
}

// partsOf returns the parts of a rule with their values for an input; nil if there is but one, or too many.
func (p *Policy) partsOf(ctx context.Context, r *rule, op Op, in Input) ([]Part, error) {
	if r == nil || r.tree == nil {
		return nil, nil
	}
	env, err := environment()
	if err != nil {
		return nil, err
	}
	written := parsed(r.expression)
	if written == nil {
		return nil, nil
	}
	x := partExplainer{policy: p, env: env, rule: r, written: written, op: op, in: in}
	x.in.UserValues = nil
	root, err := x.explain(ctx, written.Expr(), r.tree.Expr())
	if err != nil || len(x.parts) < 2 || len(x.parts) > maxParts {
		return nil, err
	}
	for _, i := range root.deciding() {
		x.parts[i].Decides = true
	}
	return x.parts, nil
}

type partExplainer struct {
	policy  *Policy
	env     *cel.Env
	rule    *rule
	written *ast.AST // the rule as it is written
	op      Op
	in      Input
	parts   []Part
}

// explain evaluates an expression: written is what it is in the text of the rule.
func (x *partExplainer) explain(ctx context.Context, written, e ast.Expr) (*explainedPart, error) {
	if operands := operandsOf(e); len(operands) > 0 && len(operands) == len(operandsOf(written)) &&
		len(x.parts) <= maxParts {
		node := &explainedPart{function: e.AsCall().FunctionName()}
		for i, operand := range operands {
			of, err := x.explain(ctx, operandsOf(written)[i], operand)
			if err != nil {
				return nil, err
			}
			node.operands = append(node.operands, of)
		}
		node.combine()
		return node, nil
	}
	node := &explainedPart{part: len(x.parts)}
	part := Part{Text: unparsed(x.written, written)}
	n := &naming{tree: x.written}
	n.walk(written, nil)
	part.reads = n.found
	var err error
	if node.result, err = x.evaluate(ctx, e); err != nil {
		return nil, err
	}
	part.Value = map[results]string{isTrue: "true", isFalse: "false", isError: "error"}[node.result]
	x.parts = append(x.parts, part)
	return node, nil
}

// operandsOf returns the operands of an operator over conditions; nil for any other expression.
func operandsOf(e ast.Expr) []ast.Expr {
	if e.Kind() != ast.CallKind {
		return nil
	}
	switch e.AsCall().FunctionName() {
	case operators.LogicalAnd, operators.LogicalOr, operators.LogicalNot, operators.Conditional:
		return e.AsCall().Args()
	}
	return nil
}

// evaluate evaluates a part as a rule of its own. An error is that of Allow.
func (x *partExplainer) evaluate(ctx context.Context, e ast.Expr) (results, error) {
	tree := x.rule.tree
	part := ast.NewCheckedAST(ast.NewAST(e, tree.SourceInfo()), tree.TypeMap(), tree.ReferenceMap())
	program, err := x.env.PlanProgram(part, programOptions(cel.InterruptCheckFrequency(checkEvery))...)
	if err != nil {
		return isError, nil //nolint:nilerr // the part has no value
	}
	alone := &rule{expression: x.rule.expression, program: program, linked: x.rule.linked, isOwner: x.rule.isOwner}
	holds, err := alone.allows(ctx, x.op, x.in, x.rule.isOwner && x.policy.isOwner(x.op, x.in))
	var unread *unreadError
	switch {
	case ctx.Err() != nil:
		return 0, ctx.Err()
	case errors.Is(err, ErrBudget):
		return 0, err
	case errors.As(err, &unread):
		return 0, unread.error
	case err != nil:
		return isError, nil //nolint:nilerr // that is the result of the part
	case holds:
		return isTrue, nil
	default:
		return isFalse, nil
	}
}

func (n *explainedPart) combine() {
	a := n.operands[0].result
	switch n.function {
	case operators.LogicalNot:
		n.result = not(a)
	case operators.LogicalAnd:
		n.result = and(a, n.operands[1].result)
	case operators.LogicalOr:
		n.result = or(a, n.operands[1].result)
	default:
		n.result = map[results]results{isTrue: n.operands[1].result, isFalse: n.operands[2].result, isError: isError}[a]
	}
}

// deciding returns the parts from which the result follows, for any values of the others.
func (n *explainedPart) deciding() (all []int) {
	switch n.function {
	case "":
		return []int{n.part}
	case operators.LogicalNot:
		return n.operands[0].deciding()
	case operators.LogicalAnd, operators.LogicalOr:
		alone := isFalse
		if n.function == operators.LogicalOr {
			alone = isTrue
		}
		if n.result == alone { // one such operand is enough
			i := slices.IndexFunc(n.operands, func(of *explainedPart) bool { return of.result == alone })
			return n.operands[i].deciding()
		}
		for _, operand := range n.operands {
			if operand.result == n.result || n.result != isError {
				all = append(all, operand.deciding()...)
			}
		}
		return all
	default:
		all = n.operands[0].deciding()
		switch n.operands[0].result {
		case isTrue:
			all = append(all, n.operands[1].deciding()...)
		case isFalse:
			all = append(all, n.operands[2].deciding()...)
		}
		return all
	}
}
