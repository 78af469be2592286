package policy

import (
	"slices"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
)

// Kind is a kind of callers. Nothing else is known of them and of their objects.
type Kind struct {
	User  bool   // they are logged in
	Owner bool   // and own the object
	Facts *Facts // about them; nil: none
}

// Outcome is the decision of a rule about a kind of callers.
type Outcome string

// The outcomes.
const (
	Always  Outcome = "yes"
	Never   Outcome = "no"
	Depends Outcome = "depends" // on the caller, the object or the input
)

// Partial is the result of a partial evaluation. Always and Never hold for each caller of the kind and each object,
// except that a rule also denies when its evaluation costs too much.
type Partial struct {
	Outcome Outcome
	On      []string // with Depends: the fields and variables that decide, as "object.public", sorted
}

// EvaluatePartially decides about all callers of a kind at once. Policy may be nil: there are no rules.
func (p *Policy) EvaluatePartially(op Op, k Kind) Partial {
	if p == nil || p.Open(op) {
		return Partial{Outcome: Always}
	}
	if r := p.ruleFor(op); r != nil {
		return p.partially(r, op, k)
	}
	switch {
	case p.ownedBy(op, k):
		return Partial{Outcome: Always}
	case op == Get || op == List:
		return Partial{Outcome: Depends, On: []string{"object.public"}}
	default:
		return Partial{Outcome: Never}
	}
}

// ownedBy is isOwner of a kind of callers.
func (p *Policy) ownedBy(op Op, k Kind) bool { return k.User && (k.Owner || op == Create) }

// ReadPartially decides about reading a field of an object that the callers may get.
func (f *Fields) ReadPartially(name string, k Kind) Partial {
	if f.Never(name) {
		return Partial{Outcome: Never}
	}
	return f.partially(f.all[name].read, Get, k)
}

// WritePartially decides about writing a field with a creation or an update that the callers may do. It says nothing of
// fields whose values from clients are ignored.
func (f *Fields) WritePartially(op Op, name string, k Kind) Partial {
	return f.partially(f.all[name].write, op, k)
}

func (f *Fields) partially(r *rule, op Op, k Kind) Partial {
	if r == nil {
		return Partial{Outcome: Always}
	}
	return f.rules.partially(r, op, k)
}

func (p *Policy) partially(r *rule, op Op, k Kind) Partial {
	owns := p.ownedBy(op, k)
	if r.tree == nil { // it is isOwner
		if owns {
			return Partial{Outcome: Always}
		}
		return Partial{Outcome: Never}
	}
	env, err := environment()
	if err != nil {
		return Partial{Outcome: Depends}
	}
	e := partialEvaluator{env: env, tree: r.tree, kind: k, op: op, owner: p.owner, owns: owns}
	e.known = plainVariables{isOwner: types.Bool(owns)}
	if !k.User {
		e.known["user"], e.known[sessionVariable] = types.NullValue, types.NullValue
	}
	if op == Create {
		e.known["object"] = types.NullValue
	}
	if op != Create && op != Update {
		e.known["input"] = types.NullValue
	}
	switch found, on := e.results(r.tree.Expr()); {
	case found == isTrue:
		return Partial{Outcome: Always}
	case found&isTrue == 0:
		return Partial{Outcome: Never}
	default:
		slices.Sort(on)
		return Partial{Outcome: Depends, On: slices.Compact(on)}
	}
}

// results are those that an expression of true or false can have: a set.
type results uint8

const (
	isTrue results = 1 << iota
	isFalse
	isError // of the evaluation, for which a rule denies

	anyResult = isTrue | isFalse | isError
)

func (r results) decided() bool { return r == isTrue || r == isFalse || r == isError }

// partialEvaluator evaluates an expression of which some variables are not known. It only claims what follows for all
// values of those: an expression that it knows nothing about can be true, false, and an error.
type partialEvaluator struct {
	env   *cel.Env
	tree  *ast.AST
	kind  Kind
	op    Op
	owner string
	owns  bool
	known plainVariables
}

// results returns those that an expression can have, and the names on which they depend.
func (e *partialEvaluator) results(x ast.Expr) (results, []string) {
	if e.kind.User && e.kind.Facts.hold(e.tree, x) {
		return isTrue, nil
	}
	if value, failed, ok := e.value(x); ok {
		return resultOf(value, failed), nil
	}
	if x.Kind() == ast.CallKind {
		args := x.AsCall().Args()
		switch x.AsCall().FunctionName() {
		case operators.LogicalAnd:
			return e.combine(args, and)
		case operators.LogicalOr:
			return e.combine(args, or)
		case operators.LogicalNot:
			found, on := e.results(args[0])
			return not(found), on
		case operators.Conditional:
			return e.conditional(args)
		case operators.Equals, operators.NotEquals:
			if found, ok := e.equality(args[0], args[1]); ok {
				if x.AsCall().FunctionName() == operators.NotEquals {
					found = not(found)
				}
				if found.decided() {
					return found, nil
				}
				return found, e.names(x)
			}
		}
	}
	return anyResult, e.names(x)
}

func resultOf(value ref.Val, failed bool) results {
	switch {
	case !failed && value == types.True:
		return isTrue
	case !failed && value == types.False:
		return isFalse
	default: // a value that is neither is an error as well
		return isError
	}
}

func not(r results) results {
	out := r & isError
	if r&isTrue != 0 {
		out |= isFalse
	}
	if r&isFalse != 0 {
		out |= isTrue
	}
	return out
}

// and and or are those of CEL, where false && error is false, and true || error is true.
func and(a, b results) results {
	switch {
	case a == isFalse || b == isFalse:
		return isFalse
	case a == isError || b == isError:
		return isError
	default:
		return isTrue
	}
}

func or(a, b results) results { return not(and(not(a), not(b))) }

// combine applies an operator to all pairs of results of its operands.
func (e *partialEvaluator) combine(args []ast.Expr, operator func(a, b results) results) (results, []string) {
	a, onA := e.results(args[0])
	b, onB := e.results(args[1])
	var out results
	for _, x := range []results{isTrue, isFalse, isError} {
		for _, y := range []results{isTrue, isFalse, isError} {
			if a&x != 0 && b&y != 0 {
				out |= operator(x, y)
			}
		}
	}
	if out.decided() {
		return out, nil
	}
	return out, slices.Concat(onA, onB)
}

func (e *partialEvaluator) conditional(args []ast.Expr) (results, []string) {
	condition, on := e.results(args[0])
	out := condition & isError
	if condition&isTrue != 0 {
		then, more := e.results(args[1])
		out, on = out|then, append(on, more...)
	}
	if condition&isFalse != 0 {
		otherwise, more := e.results(args[2])
		out, on = out|otherwise, append(on, more...)
	}
	if out.decided() {
		on = nil
	}
	return out, on
}

// equality returns the results of a == b if one follows from the kind of the callers.
func (e *partialEvaluator) equality(a, b ast.Expr) (results, bool) {
	for _, pair := range [][2]ast.Expr{{a, b}, {b, a}} {
		if pair[1].Kind() == ast.LiteralKind && pair[1].AsLiteral() == types.NullValue && e.isObject(pair[0]) {
			return isFalse, true
		}
		theirs, ok := fieldOf(pair[0], "object")
		mine, also := fieldOf(pair[1], "user")
		if ok && also && theirs == e.owner && mine == "uuid" && e.owner != "" && e.kind.User && e.op != Create {
			if e.owns {
				return isTrue, true
			}
			return isFalse | isError, true
		}
	}
	return 0, false
}

// isObject reports whether an expression is a variable that is an object, although its fields are not known.
func (e *partialEvaluator) isObject(x ast.Expr) bool {
	if x.Kind() != ast.IdentKind || e.known[x.AsIdent()] != nil {
		return false
	}
	return slices.Contains([]string{"user", "object", "input"}, x.AsIdent())
}

// value returns the value of an expression, or that it fails, if that follows from what is known.
func (e *partialEvaluator) value(x ast.Expr) (value ref.Val, failed, ok bool) {
	if e.isKnown(x, nil) {
		return e.evaluate(x)
	}
	switch x.Kind() {
	case ast.SelectKind:
		return e.failing(x.AsSelect().Operand())
	case ast.ComprehensionKind:
		return e.failing(x.AsComprehension().IterRange())
	case ast.ListKind:
		return e.failing(x.AsList().Elements()...)
	case ast.CallKind:
		call := x.AsCall()
		switch call.FunctionName() {
		case operators.LogicalAnd, operators.LogicalOr, operators.LogicalNot, operators.Conditional,
			operators.NotStrictlyFalse:
			return nil, false, false
		}
		if call.IsMemberFunction() {
			return e.failing(append([]ast.Expr{call.Target()}, call.Args()...)...)
		}
		return e.failing(call.Args()...)
	}
	return nil, false, false
}

// failing says that an expression fails if one of its operands does.
func (e *partialEvaluator) failing(operands ...ast.Expr) (ref.Val, bool, bool) {
	for _, operand := range operands {
		if _, failed, ok := e.value(operand); ok && failed {
			return nil, true, true
		}
	}
	return nil, false, false
}

// isKnown reports whether an expression names only what is known, within loops over some variables.
func (e *partialEvaluator) isKnown(x ast.Expr, loops []string) bool {
	all := func(children ...ast.Expr) bool {
		return !slices.ContainsFunc(children, func(child ast.Expr) bool { return !e.isKnown(child, loops) })
	}
	switch x.Kind() {
	case ast.LiteralKind:
		return true
	case ast.IdentKind:
		name := x.AsIdent()
		return slices.Contains(loops, name) || e.known[name] != nil || !isVariable(name)
	case ast.SelectKind:
		if field, ok := fieldOf(x, "user"); ok && e.kind.User && !slices.Contains(loops, "user") {
			return e.kind.Facts.value(field) != nil
		}
		return all(x.AsSelect().Operand())
	case ast.CallKind:
		call := x.AsCall()
		return (!call.IsMemberFunction() || all(call.Target())) && all(call.Args()...)
	case ast.ListKind:
		return all(x.AsList().Elements()...)
	case ast.ComprehensionKind:
		c := x.AsComprehension()
		inner := append(slices.Clone(loops), c.IterVar(), c.IterVar2(), c.AccuVar())
		return all(c.IterRange(), c.AccuInit()) && e.isKnown(c.LoopCondition(), inner) &&
			e.isKnown(c.LoopStep(), inner) && e.isKnown(c.Result(), inner)
	default:
		return false
	}
}

// evaluate evaluates an expression that is known. One that costs too much is not: the whole rule would.
func (e *partialEvaluator) evaluate(x ast.Expr) (value ref.Val, failed, ok bool) {
	part := ast.NewCheckedAST(ast.NewAST(x, e.tree.SourceInfo()), e.tree.TypeMap(), e.tree.ReferenceMap())
	program, err := e.env.PlanProgram(part, programOptions()...)
	if err != nil {
		return nil, false, false
	}
	variables := plainVariables{}
	for name, value := range e.known {
		variables[name] = value
	}
	if e.kind.User {
		variables["user"] = e.kind.Facts.user()
	}
	value, details, err := program.Eval(variables)
	if cost := details.ActualCost(); cost == nil || *cost > costLimit/2 {
		return nil, false, false
	}
	return value, err != nil, true
}

// names returns the names of what is not known in an expression.
func (e *partialEvaluator) names(x ast.Expr) (all []string) {
	n := &naming{tree: e.tree}
	n.walk(x, nil)
	named := map[string]bool{}
	for _, f := range n.found {
		root, _, isLinked := strings.Cut(f.Variable, ".")
		if isLinked || isVariable(root) && root != LinkedVariable && e.known[root] == nil {
			all = append(all, f.Variable+"."+f.Field)
			named[root] = true
		}
	}
	within := ast.NavigateExpr(e.tree, x)
	for _, loop := range ast.MatchDescendants(within, ast.KindMatcher(ast.ComprehensionKind)) {
		named[loop.AsComprehension().IterVar()], named[loop.AsComprehension().IterVar2()] = true, true
	}
	for _, name := range ast.MatchDescendants(within, ast.KindMatcher(ast.IdentKind)) {
		if ident := name.AsIdent(); isVariable(ident) && e.known[ident] == nil && !named[ident] {
			all = append(all, ident)
		}
	}
	return all
}
