package policy

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"

	"belfry/pkg/object"
)

// UserRule is a compiled expression over only a user. It is safe for concurrent use.
type UserRule struct{ program cel.Program }

// RequestRule is a compiled expression over a request: its method and its path. It is safe
// for concurrent use.
type RequestRule struct{ program cel.Program }

// The environments are created with the first rule that needs them, as environment is.
var (
	userEnvironment = sync.OnceValues(func() (*cel.Env, error) {
		return plainEnvironment(cel.Variable("user", cel.DynType))
	})
	requestEnvironment = sync.OnceValues(func() (*cel.Env, error) {
		return plainEnvironment(cel.Variable("method", cel.StringType), cel.Variable("path", cel.StringType),
			cel.ParserRecursionLimit(requestDepth))
	})
)

// requestDepth is how deep the expressions of a rule over requests may be in each other. Users write these rules, and
// the checker takes the cube of the depth of nested lists.
const requestDepth = 16

func plainEnvironment(variables ...cel.EnvOption) (*cel.Env, error) {
	return cel.NewEnv(append(variables, cel.CrossTypeNumericComparisons(true),
		cel.RegexProgramSizeLimit(patternSize))...)
}

// CompileUserRule compiles and type-checks a rule over users. It is nil when there are problems.
func CompileUserRule(expression string) (*UserRule, []Problem) {
	compiled, problems := compilePlain(userEnvironment, parse, expression, "only `user`")
	if len(problems) > 0 {
		return nil, problems
	}
	return &UserRule{compiled}, nil
}

// CompileRequestRule compiles and type-checks a rule over requests. It is nil when there are problems.
func CompileRequestRule(expression string) (*RequestRule, []Problem) {
	// An environment of its own waits for no other compilation.
	own := func() (*cel.Env, error) {
		env, err := requestEnvironment()
		if err != nil {
			return nil, err
		}
		return env.Extend()
	}
	compiled, problems := compilePlain(own, checkAlone, expression, "only `method` and `path`")
	if len(problems) > 0 {
		return nil, problems
	}
	return &RequestRule{compiled}, nil
}

// compilePlain compiles a rule that is not a rule of a store. known says which names it knows.
func compilePlain(environment func() (*cel.Env, error), check func(*cel.Env, Op, string) (*cel.Ast, []Problem),
	expression, known string) (cel.Program, []Problem) {
	env, err := environment()
	if err != nil {
		return nil, []Problem{{Message: err.Error()}}
	}
	tree, problems := check(env, "", expression)
	for i := range problems {
		if strings.HasPrefix(problems[i].Message, "undeclared reference to") {
			problems[i].Message = fmt.Sprintf("%s; this rule knows %s", problems[i].Message, known)
		}
	}
	if len(problems) == 0 {
		problems = dynamicPatterns("", tree)
	}
	if len(problems) > 0 {
		return nil, problems
	}
	return program(env, "", tree, cel.InterruptCheckFrequency(checkEvery))
}

// Holds reports whether the rule is true of a user. One that can't be evaluated (a field is
// missing, a type does not fit, the cost limit is exceeded, ctx has ended) does not hold, and
// none holds for nobody.
func (r *UserRule) Holds(ctx context.Context, user object.Object) bool {
	if r == nil || user == nil {
		return false
	}
	return holds(ctx, nil, r.program, plainVariables{"user": recordOf(user)})
}

// Holds reports whether the rule is true of a request. A rule that can't be evaluated does not hold. Its cost is
// charged to the budget, if it is not nil.
func (r *RequestRule) Holds(ctx context.Context, budget *Budget, method, path string) bool {
	return r != nil &&
		holds(ctx, budget, r.program, plainVariables{"method": types.String(method), "path": types.String(path)})
}

func holds(ctx context.Context, budget *Budget, compiled cel.Program, variables plainVariables) bool {
	out, details, err := compiled.ContextEval(ctx, variables)
	budget.spend(details.ActualCost())
	return err == nil && out == types.True
}

// plainVariables are the variables of one evaluation.
type plainVariables map[string]ref.Val

// ResolveName implements cel.Activation.
func (v plainVariables) ResolveName(name string) (any, bool) {
	value, ok := v[name]
	return value, ok
}

// Parent implements cel.Activation.
func (plainVariables) Parent() cel.Activation { return nil }
