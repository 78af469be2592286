package policy

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/overloads"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
)

// Problem is an error in an expression. Line and Column count from 1.
type Problem struct {
	Op           Op
	Line, Column int
	Message      string
}

// Compile compiles and type-checks rules. The policy is nil when there are
// problems.
func Compile(r Rules) (*Policy, []Problem) {
	p := &Policy{ownersRules: r.Owner, owner: r.OwnerField, references: r.References, rules: map[Op]*rule{}}
	switch {
	case r.Users:
		p.owner = "uuid"
	case r.Owner && p.owner == "":
		p.owner = "user"
	}
	var problems []Problem
	for _, of := range []struct {
		op         Op
		expression string
	}{{Create, r.Create}, {Get, r.Get}, {Update, r.Update}, {Delete, r.Delete}, {List, r.List}} {
		if strings.TrimSpace(of.expression) == "" {
			continue
		}
		compiled, found := p.compile(of.op, of.expression)
		p.rules[of.op] = compiled
		problems = append(problems, found...)
	}
	if len(problems) > 0 {
		return nil, problems
	}
	return p, nil
}

// isOwner is the name by which a rule asks whether the caller is the owner of the object.
const isOwner = "isOwner"

// environment is created with the first rule: it takes a few milliseconds, which a
// configuration without rules saves.
var environment = sync.OnceValues(func() (*cel.Env, error) {
	// The types of an object's values are not known in advance, so objects are
	// dynamic: a wrong field name is an evaluation error. Variables and functions
	// are checked.
	return cel.NewEnv(
		cel.Variable("user", cel.DynType),
		cel.Variable("object", cel.DynType),
		cel.Variable("input", cel.DynType),
		cel.Variable("now", cel.TimestampType),
		cel.Variable(sessionVariable, cel.DynType),
		cel.Variable(isOwner, cel.BoolType),
		cel.Variable(LinkedVariable, cel.DynType),
		cel.CrossTypeNumericComparisons(true),
		cel.RegexProgramSizeLimit(patternSize),
	)
})

// compiling serializes compilations: when it reports an unknown name, the checker of an
// environment writes to data that its other compilations share.
var compiling sync.Mutex

// parse parses and type-checks an expression, which must be true or false.
func parse(env *cel.Env, op Op, expression string) (*cel.Ast, []Problem) {
	compiling.Lock()
	defer compiling.Unlock()
	return checkAlone(env, op, expression)
}

// checkAlone is parse in an environment that no other compilation uses at the same time.
func checkAlone(env *cel.Env, op Op, expression string) (*cel.Ast, []Problem) {
	tree, issues := env.Parse(expression)
	if issues.Err() == nil {
		compareTimes(tree.NativeRep(), false)
		tree, issues = env.Check(tree)
	}
	if issues.Err() != nil {
		return nil, problemsOf(op, issues)
	}
	if t := tree.OutputType(); !t.IsExactType(cel.BoolType) && !t.IsExactType(cel.DynType) {
		return nil, []Problem{{Op: op, Line: 1, Column: 1,
			Message: "the expression must be true or false, not of type " + t.String()}}
	}
	return tree, nil
}

func problemsOf(op Op, issues *cel.Issues) (problems []Problem) {
	for _, e := range issues.Errors() {
		problems = append(problems,
			Problem{Op: op, Line: e.Location.Line(), Column: e.Location.Column() + 1, Message: withHint(e.Message)})
	}
	return problems
}

// program makes a program of bounded cost.
func program(env *cel.Env, op Op, tree *cel.Ast, options ...cel.ProgramOption) (cel.Program, []Problem) {
	compiled, err := env.Program(tree, programOptions(options...)...)
	if err != nil {
		return nil, []Problem{{Op: op, Line: 1, Column: 1, Message: err.Error()}}
	}
	return compiled, nil
}

// programOptions returns options with those that bound the cost.
func programOptions(options ...cel.ProgramOption) []cel.ProgramOption {
	return append(options, cel.CostTracking(costs{}), cel.CostLimit(costLimit), cel.EvalOptions(cel.OptOptimize))
}

// rule is one compiled expression.
type rule struct {
	expression   string
	program      cel.Program // nil: the rule is isOwner
	tree         *ast.AST    // of the program
	object       bool        // it refers to the stored object
	input        bool        // it refers to the incoming object
	isOwner      bool        // it asks for the owner
	session      bool        // it refers to the session
	linked       []string    // the references that it follows
	fields       fields
	neededValues []neededValue // if isNarrow, each object that the rule allows has one of these values
	isNarrow     bool

	rest  cel.Program // in which parts are variables; nil without parts
	parts []*userPart
}

// dependsOnObject reports whether a rule about a stored object depends on it.
func (r *rule) dependsOnObject() bool { return r.object || r.isOwner || len(r.linked) > 0 }

func (p *Policy) compile(op Op, expression string) (*rule, []Problem) {
	if strings.TrimSpace(expression) == isOwner && p.owner != "" {
		// The most frequent rule needs no program.
		return &rule{expression: expression, isOwner: true, neededValues: []neededValue{p.ownedByUser()},
			isNarrow: true}, nil
	}
	env, err := environment()
	if err != nil {
		return nil, []Problem{{Op: op, Message: err.Error()}}
	}
	tree, problems := parse(env, op, expression)
	if len(problems) > 0 {
		return nil, problems
	}
	if problems := slices.Concat(dynamicPatterns(op, tree), unknownSessionFields(op, tree)); len(problems) > 0 {
		return nil, problems
	}
	linked, problems := linksOf(op, tree, p.references)
	if len(problems) > 0 {
		return nil, problems
	}
	asks := mentions(tree, isOwner)
	if asks && p.owner == "" {
		return nil, []Problem{{Op: op, Line: 1,
			Column: 1, Message: "isOwner is for stores whose objects have an owner: add `owner: user`, or the field " +
				"that is to hold its uuid, to the store"}}
	}
	compiled, problems := program(env, op, tree, cel.InterruptCheckFrequency(checkEvery))
	if len(problems) > 0 {
		return nil, problems
	}
	r := &rule{expression: expression, program: compiled, object: mentions(tree, "object"),
		input: mentions(tree, "input"), isOwner: asks, session: mentions(tree, sessionVariable), linked: linked,
		fields: fieldsOf(tree)}
	r.fields.names = append(r.fields.names, linked...)
	r.tree = tree.NativeRep()
	n := narrower{policy: p, env: env, tree: r.tree}
	r.neededValues, r.isNarrow = n.neededBy(n.tree.Expr())
	if r.rest, r.parts, err = withoutParts(env, n.tree); err != nil {
		return nil, []Problem{{Op: op, Line: 1, Column: 1, Message: err.Error()}}
	}
	return r, nil
}

// dynamicPatterns rejects regular expressions that come from an object: compiling
// one costs far more than its length suggests.
func dynamicPatterns(op Op, tree *cel.Ast) []Problem {
	var problems []Problem
	native := tree.NativeRep()
	for _, call := range ast.MatchDescendants(ast.NavigateAST(native), ast.FunctionMatcher(overloads.Matches)) {
		args := call.AsCall().Args()
		pattern := args[len(args)-1]
		if pattern.Kind() == ast.LiteralKind {
			continue
		}
		at := native.SourceInfo().GetStartLocation(pattern.ID())
		problems = append(problems, Problem{Op: op, Line: at.Line(), Column: at.Column() + 1,
			Message: "the pattern of matches must be a string literal"})
	}
	return problems
}

func mentions(tree *cel.Ast, variable string) bool {
	for _, reference := range tree.NativeRep().ReferenceMap() {
		if reference.Name == variable {
			return true
		}
	}
	return false
}

// allows evaluates the rule.
func (r *rule) allows(ctx context.Context, op Op, in Input, owner bool) (bool, error) {
	if err := in.Budget.Check(); err != nil {
		return false, err
	}
	if r.program == nil {
		return owner, nil
	}
	v := &variables{
		user:    in.UserValues.userOf(in.User),
		object:  recordOf(in.Object),
		input:   recordOf(in.Input),
		session: in.Session,
		now:     types.Timestamp{Time: in.Now},
		owner:   types.Bool(owner),
	}
	if len(r.linked) > 0 {
		v.linked = newLinkedObjects(ctx, op, in)
	}
	program := r.program
	if in.UserValues != nil && r.rest != nil {
		program, v.ctx, v.parts, v.values = r.rest, ctx, r.parts, in.UserValues
	}
	out, details, err := program.ContextEval(ctx, v)
	in.Budget.spend(details.ActualCost())
	in.Budget.spend(&v.partsCost)
	if v.linked != nil && v.linked.failed != nil { // the result may depend on it
		return false, &unreadError{v.linked.failed}
	}
	if err != nil && v.linked != nil && v.linked.refused != nil { // it holds, or not, depending on what is unknown
		return false, &unreadError{v.linked.refused}
	}
	if err != nil {
		return false, v.linked.explained(err)
	}
	allowed, ok := out.(types.Bool)
	if !ok {
		return false, errors.New("the result is neither true nor false")
	}
	return bool(allowed), nil
}

// variables are those that an expression can refer to.
type variables struct {
	user, object, input ref.Val
	session             *Session
	now                 types.Timestamp
	owner               types.Bool
	linked              *linkedObjects // nil: the rule reads none

	ctx       context.Context // of parts
	parts     []*userPart
	values    *UserValues
	partsCost uint64
}

// ResolveName implements cel.Activation.
func (v *variables) ResolveName(name string) (any, bool) {
	switch name {
	case "user":
		return v.user, true
	case "object":
		return v.object, true
	case "input":
		return v.input, true
	case "now":
		return v.now, true
	case sessionVariable:
		return v.session.value(), true
	case isOwner:
		return v.owner, true
	case LinkedVariable:
		if v.linked != nil {
			return v.linked, true
		}
	}
	for _, p := range v.parts {
		if p.variable == name {
			return v.partOf(p), true
		}
	}
	return nil, false
}

// Parent implements cel.Activation.
func (*variables) Parent() cel.Activation { return nil }
