package policy

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"

	"belfry/pkg/store/object"
)

// UserRule is a compiled expression over a user alone. It is safe for concurrent use.
type UserRule struct{ program cel.Program }

// userVariable is the variable of rules over users.
const userVariable = "user"

// userEnvironment is created with the first rule over users, as environment is.
var userEnvironment = sync.OnceValues(func() (*cel.Env, error) {
	return cel.NewEnv(
		cel.Variable(userVariable, cel.DynType),
		cel.CrossTypeNumericComparisons(true),
		cel.RegexProgramSizeLimit(patternSize),
	)
})

// CompileUserRule compiles and type-checks a rule over users. It is nil when there are problems.
func CompileUserRule(expression string) (*UserRule, []Problem) {
	env, err := userEnvironment()
	if err != nil {
		return nil, []Problem{{Message: err.Error()}}
	}
	tree, problems := parse(env, "", expression)
	for i := range problems {
		if strings.HasPrefix(problems[i].Message, "undeclared reference to") {
			problems[i].Message = fmt.Sprintf("%s; this rule knows `%s` alone", problems[i].Message, userVariable)
		}
	}
	if len(problems) == 0 {
		problems = dynamicPatterns("", tree)
	}
	if len(problems) > 0 {
		return nil, problems
	}
	compiled, problems := program(env, "", tree, cel.InterruptCheckFrequency(checkEvery))
	if len(problems) > 0 {
		return nil, problems
	}
	return &UserRule{compiled}, nil
}

// Holds reports whether the rule is true of a user. One that can't be evaluated (a field is
// missing, a type does not fit, the cost limit is exceeded, ctx has ended) does not hold, and
// none holds for nobody.
func (r *UserRule) Holds(ctx context.Context, user object.Object) bool {
	if r == nil || user == nil {
		return false
	}
	out, _, err := r.program.ContextEval(ctx, &userOnly{recordOf(user)})
	return err == nil && out == types.True
}

// userOnly is the variable of one evaluation.
type userOnly struct{ user ref.Val }

// ResolveName implements cel.Activation.
func (v *userOnly) ResolveName(name string) (any, bool) { return v.user, name == userVariable }

// Parent implements cel.Activation.
func (*userOnly) Parent() cel.Activation { return nil }
