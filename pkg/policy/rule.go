package policy

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"sync"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"

	"belfry/pkg/object"
)

// The bounds of one evaluation, in CEL's units of cost, which grow with the
// sizes of the values that are looked at.
const (
	costLimit  = 1_000_000
	checkEvery = 100 // comprehension steps between looks at the context
)

// Problem is what is wrong with an expression, at a place in it from 1.
type Problem struct {
	Op           Op
	Line, Column int
	Message      string
}

// Compile compiles and type-checks rules. The policy is nil when there are
// problems.
func Compile(r Rules) (*Policy, []Problem) {
	p := &Policy{owner: r.Owner, rules: map[Op]*rule{}}
	var problems []Problem
	for _, of := range []struct {
		op         Op
		expression string
	}{{Create, r.Create}, {Get, r.Get}, {Update, r.Update}, {Delete, r.Delete}, {List, r.List}} {
		if strings.TrimSpace(of.expression) == "" {
			continue
		}
		compiled, found := compile(of.op, of.expression)
		p.rules[of.op] = compiled
		problems = append(problems, found...)
	}
	if len(problems) > 0 {
		return nil, problems
	}
	return p, nil
}

// environment is made once, when the first rule is compiled: it takes a few
// milliseconds that a configuration without rules need not pay.
var environment = sync.OnceValues(func() (*cel.Env, error) {
	// An object's values have no types that could be known beforehand, so
	// objects are dynamic: a wrong field is found when it is missing. The
	// variables and functions are checked.
	return cel.NewEnv(
		cel.Variable("user", cel.DynType),
		cel.Variable("object", cel.DynType),
		cel.Variable("input", cel.DynType),
		cel.Variable("now", cel.TimestampType),
		cel.CrossTypeNumericComparisons(true),
	)
})

// rule is one compiled expression.
type rule struct {
	program             cel.Program
	user, object, input bool // which variables it mentions
}

func compile(op Op, expression string) (*rule, []Problem) {
	env, err := environment()
	if err != nil {
		return nil, []Problem{{Op: op, Message: err.Error()}}
	}
	ast, issues := env.Compile(expression)
	if issues.Err() != nil {
		var problems []Problem
		for _, e := range issues.Errors() {
			problems = append(problems, Problem{Op: op, Line: e.Location.Line(), Column: e.Location.Column() + 1, Message: e.Message})
		}
		return nil, problems
	}
	if t := ast.OutputType(); !t.IsExactType(cel.BoolType) && !t.IsExactType(cel.DynType) {
		return nil, []Problem{{Op: op, Line: 1, Column: 1, Message: "the expression must be true or false, not of type " + t.String()}}
	}
	program, err := env.Program(ast, cel.CostLimit(costLimit), cel.InterruptCheckFrequency(checkEvery), cel.EvalOptions(cel.OptOptimize))
	if err != nil {
		return nil, []Problem{{Op: op, Line: 1, Column: 1, Message: err.Error()}}
	}
	r := &rule{program: program}
	for _, reference := range ast.NativeRep().ReferenceMap() {
		switch reference.Name {
		case "user":
			r.user = true
		case "object":
			r.object = true
		case "input":
			r.input = true
		}
	}
	return r, nil
}

var errNotBool = errors.New("the expression gave neither true nor false")

// allows evaluates the rule over the variables that it mentions.
func (r *rule) allows(ctx context.Context, in Input) (bool, error) {
	vars := map[string]any{"now": in.Now}
	for _, v := range []struct {
		name  string
		used  bool
		value object.Object
	}{{"user", r.user, in.User}, {"object", r.object, in.Object}, {"input", r.input, in.Input}} {
		if !v.used {
			continue
		}
		value, err := decode(v.value)
		if err != nil {
			return false, err
		}
		vars[v.name] = value
	}
	out, _, err := r.program.ContextEval(ctx, vars)
	if err != nil {
		return false, err
	}
	allowed, ok := out.(types.Bool)
	if !ok {
		return false, errNotBool
	}
	return bool(allowed), nil
}

// decode gives CEL an object: null for none, whole numbers as int where they
// fit, all others as double.
func decode(o object.Object) (any, error) {
	if o == nil {
		return types.NullValue, nil
	}
	dec := json.NewDecoder(strings.NewReader(string(o.Encode())))
	dec.UseNumber()
	var v map[string]any
	if err := dec.Decode(&v); err != nil {
		return nil, err
	}
	return numbers(v), nil
}

func numbers(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for name, element := range v {
			v[name] = numbers(element)
		}
	case []any:
		for i, element := range v {
			v[i] = numbers(element)
		}
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n
		}
		f, err := v.Float64()
		if err != nil {
			return math.NaN() // beyond what can be compared: equal to nothing
		}
		if f == math.Trunc(f) && math.Abs(f) < 1<<53 {
			return int64(f)
		}
		return f
	}
	return v
}
