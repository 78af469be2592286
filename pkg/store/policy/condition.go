package policy

import (
	"fmt"
	"strings"
	"sync"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"

	"belfry/pkg/object"
)

// Condition is a compiled expression over one object. It depends only on that object:
// it sees neither a user nor the time, and its cost limit is counted, not
// measured. So every process gets the same result for the same object, at any time. It is
// safe for concurrent use.
type Condition struct {
	expression string
	program    cel.Program
	fields     []string
}

// String returns the expression.
func (c *Condition) String() string { return c.expression }

// source is the variable of conditions.
const source = "source"

// sourceEnvironment is created with the first condition, as environment is.
var sourceEnvironment = sync.OnceValues(func() (*cel.Env, error) {
	return cel.NewEnv(
		cel.Variable(source, cel.DynType),
		cel.CrossTypeNumericComparisons(true),
		cel.RegexProgramSizeLimit(patternSize),
	)
})

// CompileCondition compiles and type-checks a condition. It is nil when there are problems.
func CompileCondition(expression string) (*Condition, []Problem) {
	env, err := sourceEnvironment()
	if err != nil {
		return nil, []Problem{{Message: err.Error()}}
	}
	tree, problems := parse(env, "", expression)
	for i := range problems {
		problems[i].Message = conditionMessage(problems[i].Message)
	}
	if len(problems) > 0 {
		return nil, problems
	}
	fields, problems := sourceFields(tree)
	if problems = append(problems, dynamicPatterns("", tree)...); len(problems) > 0 {
		return nil, problems
	}
	compiled, problems := program(env, "", tree)
	if len(problems) > 0 {
		return nil, problems
	}
	return &Condition{expression: expression, program: compiled, fields: fields}, nil
}

// conditionMessage adds the known names to the message about a name that it does not know.
func conditionMessage(message string) string {
	if strings.HasPrefix(message, "undeclared reference to") {
		return fmt.Sprintf("%s; a condition knows only `%s`, the object that is copied", message, source)
	}
	return message
}

// Fields are those of the object that the condition reads.
func (c *Condition) Fields() []string { return c.fields }

// Holds reports whether the condition is true of an encoded object. One that can't be
// evaluated (a field is missing, a type does not fit, the cost limit is exceeded) does not
// hold. No context ends the evaluation: its result must not depend on one.
func (c *Condition) Holds(body []byte) bool {
	o, err := object.Decode(body)
	if err != nil {
		return false
	}
	out, _, err := c.program.Eval(&sourceVariable{recordOf(o)})
	return err == nil && out == types.True
}

// sourceVariable is the variable of one evaluation.
type sourceVariable struct{ source ref.Val }

// ResolveName implements cel.Activation.
func (v *sourceVariable) ResolveName(name string) (any, bool) { return v.source, name == source }

// Parent implements cel.Activation.
func (*sourceVariable) Parent() cel.Activation { return nil }

// sourceFields finds source.name, has(source.name) and source["name"]. Any other use of the
// object is a problem: the names in a condition have to be known.
func sourceFields(tree *cel.Ast) (fields []string, problems []Problem) {
	native := tree.NativeRep()
	for _, e := range ast.MatchDescendants(ast.NavigateAST(native), ast.KindMatcher(ast.IdentKind)) {
		if e.AsIdent() != source {
			continue
		}
		if field, ok := selected(e); ok {
			fields = append(fields, field)
			continue
		}
		at := native.SourceInfo().GetStartLocation(e.ID())
		problems = append(problems, Problem{
			Line: at.Line(), Column: at.Column() + 1,
			Message: `a condition names the fields that it reads: source.field, or source["field"]`,
		})
	}
	return fields, problems
}

// selected returns the field that an expression selects of an identifier.
func selected(e ast.NavigableExpr) (string, bool) {
	parent, ok := e.Parent()
	if !ok {
		return "", false
	}
	switch parent.Kind() {
	case ast.SelectKind:
		return parent.AsSelect().FieldName(), true
	case ast.CallKind:
		args := parent.AsCall().Args()
		if parent.AsCall().FunctionName() != operators.Index || args[0].ID() != e.ID() ||
			args[1].Kind() != ast.LiteralKind {
			return "", false
		}
		name, ok := args[1].AsLiteral().(types.String)
		return string(name), ok
	default:
		return "", false
	}
}
