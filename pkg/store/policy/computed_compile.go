package policy

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
)

// wholeObject is the variable by which an expression asks whether a field exists, and reads fields whose names are
// no identifiers: has(object.title), object["first-name"].
const wholeObject = "object"

// unchecked is the expression of a computed field, parsed.
type unchecked struct {
	tree      *cel.Ast
	reads     []string
	variables []string // those that it reads as variables, not of the whole object
}

// parseComputed parses an expression and finds the fields that it reads.
func parseComputed(expression string, known Known) (*unchecked, []Problem) {
	env, err := computedEnvironment()
	if err != nil {
		return nil, []Problem{{Message: err.Error()}}
	}
	tree, issues := env.Parse(expression)
	if issues.Err() != nil {
		return nil, problemsOf("", issues)
	}
	r := reads{tree: tree.NativeRep(), known: known, names: map[string]bool{}}
	r.walk(tree.NativeRep().Expr(), nil)
	if len(r.problems) > 0 {
		return nil, r.problems
	}
	compareTimes(tree.NativeRep(), true)
	u := &unchecked{tree: tree}
	for _, name := range slices.Sorted(maps.Keys(r.names)) {
		u.reads = append(u.reads, name)
		if r.names[name] {
			u.variables = append(u.variables, name)
		}
	}
	return u, nil
}

// compile type-checks the expression with the types of the fields that it reads.
func (u *unchecked) compile(known Known) (*computed, []Problem) {
	env, err := computedEnvironment()
	if err != nil {
		return nil, []Problem{{Message: err.Error()}}
	}
	var fields []cel.EnvOption
	for _, name := range u.variables {
		fields = append(fields, cel.Variable(name, celType(known.Types[name])))
	}
	if env, err = env.Extend(fields...); err != nil {
		return nil, []Problem{{Line: 1, Column: 1, Message: err.Error()}}
	}
	compiling.Lock()
	tree, issues := env.Check(u.tree)
	compiling.Unlock()
	if issues.Err() != nil {
		return nil, problemsOf("", issues)
	}
	if problems := dynamicPatterns("", tree); len(problems) > 0 {
		return nil, problems
	}
	kind, ok := jsonType(tree.OutputType())
	if !ok {
		return nil, []Problem{{Line: 1,
			Column: 1, Message: fmt.Sprintf("the value is of type %s, which JSON does not have; convert it, for "+
				"instance by string(...)", tree.OutputType())}}
	}
	compiled, problems := program(env, "", tree)
	if len(problems) > 0 {
		return nil, problems
	}
	return &computed{program: compiled, reads: u.reads, kind: kind}, nil
}

// celType is the type of a field by its type in a JSON Schema.
func celType(kind string) *cel.Type {
	switch kind {
	case "string":
		return cel.StringType
	case "integer":
		return cel.IntType
	case "number":
		return cel.DoubleType
	case "boolean":
		return cel.BoolType
	case "array":
		return cel.ListType(cel.DynType)
	case "object":
		return cel.MapType(cel.StringType, cel.DynType)
	default:
		return cel.DynType
	}
}

// jsonType is the type in a JSON Schema of an expression's value; "" for any.
func jsonType(t *cel.Type) (kind string, ok bool) {
	switch t.Kind() {
	case types.DynKind, types.AnyKind, types.NullTypeKind:
		return "", true
	case types.StringKind, types.TimestampKind:
		return "string", true
	case types.IntKind, types.UintKind:
		return "integer", true
	case types.DoubleKind:
		return "number", true
	case types.BoolKind:
		return "boolean", true
	case types.ListKind:
		return "array", true
	case types.MapKind:
		return "object", true
	default:
		return "", false
	}
}

// reads finds the fields that an expression reads.
type reads struct {
	tree     *ast.AST
	known    Known
	names    map[string]bool // whether they are read as variables
	problems []Problem
}

// walk finds the fields in an expression within which some names are variables of loops.
func (r *reads) walk(e ast.Expr, loops []string) {
	switch e.Kind() {
	case ast.IdentKind:
		if name := e.AsIdent(); !slices.Contains(loops, name) && !isTypeName(name) {
			r.read(e, name)
		}
	case ast.SelectKind:
		if s := e.AsSelect(); r.isWhole(s.Operand(), loops) {
			r.read(e, s.FieldName())
		} else {
			r.walk(s.Operand(), loops)
		}
	case ast.CallKind:
		r.walkCall(e.AsCall(), loops)
	case ast.ListKind:
		for _, element := range e.AsList().Elements() {
			r.walk(element, loops)
		}
	case ast.MapKind:
		for _, entry := range e.AsMap().Entries() {
			r.walk(entry.AsMapEntry().Key(), loops)
			r.walk(entry.AsMapEntry().Value(), loops)
		}
	case ast.StructKind:
		r.problem(e, "an expression has no messages of Protocol Buffers; write {'name': value}")
	case ast.ComprehensionKind:
		c := e.AsComprehension()
		if at := mapIn(c.IterRange()); at != nil {
			r.problem(at, "a loop over {...}: the order of its keys differs from one time to the next; write a list")
		}
		r.walk(c.IterRange(), loops)
		r.walk(c.AccuInit(), loops)
		inner := append(slices.Clone(loops), c.IterVar(), c.IterVar2(), c.AccuVar())
		r.walk(c.LoopCondition(), inner)
		r.walk(c.LoopStep(), inner)
		r.walk(c.Result(), inner)
	default: // literals
	}
}

func (r *reads) walkCall(call ast.CallExpr, loops []string) {
	args := call.Args()
	if call.FunctionName() == operators.Index && len(args) == 2 && r.isWhole(args[0], loops) &&
		args[1].Kind() == ast.LiteralKind {
		if name, ok := args[1].AsLiteral().(types.String); ok {
			r.read(args[1], string(name))
			return
		}
	}
	if call.IsMemberFunction() {
		r.walk(call.Target(), loops)
	}
	for _, arg := range args {
		r.walk(arg, loops)
	}
}

// mapIn returns a map that an expression itself contains, nil for none.
func mapIn(e ast.Expr) (found ast.Expr) {
	ast.PreOrderVisit(e, ast.NewExprVisitor(func(inner ast.Expr) {
		if inner.Kind() == ast.MapKind {
			found = inner
		}
	}))
	return found
}

func (r *reads) isWhole(e ast.Expr, loops []string) bool {
	return e.Kind() == ast.IdentKind && e.AsIdent() == wholeObject && !slices.Contains(loops, wholeObject)
}

// read notes a field.
func (r *reads) read(e ast.Expr, name string) {
	_, known := r.known.Types[name]
	switch {
	case name == wholeObject && e.Kind() == ast.IdentKind:
		r.problem(e, `an expression names the fields that it reads: title, object.title, or object["title"]`)
	case strings.HasPrefix(name, "_"):
		r.problem(e, fmt.Sprintf("%q is internal to belfry", name))
	case r.known.Closed && !known:
		message := fmt.Sprintf("the schema of the store has no property %q", name)
		if r.known.Suggest != nil {
			message += "; " + r.known.Suggest(name)
		}
		r.problem(e, message)
	default:
		r.names[name] = r.names[name] || e.Kind() == ast.IdentKind
	}
}

func (r *reads) problem(e ast.Expr, message string) {
	at := r.tree.SourceInfo().GetStartLocation(e.ID())
	r.problems = append(r.problems, Problem{Line: at.Line(), Column: at.Column() + 1, Message: message})
}

// isTypeName reports whether a name is that of a type, as in type(x) == string.
func isTypeName(name string) bool {
	return slices.Contains([]string{"bool", "bytes", "double", "int", "list", "map", "null_type", "string", "type",
		"uint"}, name)
}
