package query

import (
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"cel.dev/cel-go/common"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/parser"

	"belfry/pkg/object"
)

// fragments of filters, of which random ones are made.
var fragments = []string{
	"a", "b", "object.a", `object["x-y"]`, "a.b", `a["b"]`, "object.a.b", "(a)", "as", "has", "_x1", "object",
	`"x"`, `'x'`, `"a\n\"\\\u00e9"`, `'\x41\101\U0001f600'`, `r"a\b"`, `"""a"b"""`, `''`, `""`,
	"1", "-1", "1.5", "-2e3", ".5", "1e+2", "5u", "0x1F", "007", "true", "false", "null", "(1)", "- 1",
	"==", "==", "!=", "<", "<=", ">", ">=", "in", "&&", "||", "&&", "||", "!", "(", ")", "[", "]", ",", ".",
	"[1, 'x',]", "[]", "has(", "startsWith(", ".startsWith(", "startsWith", "size(a)", "+", "// no\n", " ",
}

// templates are filters with places for fragments.
var templates = []string{"%", "% == %", "% in %", "% && %", "% || % && %", "!(%)", "!%", "has(%)", "%.startsWith(%)",
	"(%) || !(% == %)", "% < % && % >= %", "%%%%", "% == % || % in [%, %]"}

// TestFiltersMeanWhatTheyMeanInCEL: what CEL takes for a filter is one, and means the same.
func TestFiltersMeanWhatTheyMeanInCEL(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	p, err := parser.NewParser(parser.EnableIdentEscapeSyntax(true), parser.MaxRecursionDepth(50))
	if err != nil {
		t.Fatal(err)
	}
	same := 0
	for range 60_000 {
		text := templates[r.IntN(len(templates))]
		for strings.Contains(text, "%") {
			with := fragments[r.IntN(len(fragments))]
			if r.IntN(6) == 0 && len(text) < 40 {
				with = templates[r.IntN(len(templates))]
			}
			text = strings.Replace(text, "%", with, 1)
		}
		if packed := strings.ReplaceAll(strings.ReplaceAll(text, "// no\n", ""), " ", ""); strings.Contains(packed,
			"!!") || strings.Contains(packed, "--") {
			continue // of which CEL takes two for none, whatever follows
		}
		tree, problems := p.Parse(common.NewTextSource(text))
		if len(problems.GetErrors()) > 0 {
			continue
		}
		want, ok := meaning(tree.Expr())
		if !ok {
			continue
		}
		got, err := parseFilter(text)
		if err != nil {
			t.Fatalf("%q is a filter in CEL: %v", text, err)
		}
		if got.meaning() != want {
			t.Fatalf("%q is %s, in CEL %s", text, got.meaning(), want)
		}
		same++
	}
	if same < 1000 {
		t.Errorf("only %d filters were compared", same)
	}
}

// meaning writes a condition of a filter, as far as CEL has it.
func (n *node) meaning() string {
	var all []string
	for _, arg := range n.args {
		all = append(all, arg.meaning())
	}
	switch n.kind {
	case and:
		return "(" + strings.Join(all, " && ") + ")"
	case or:
		return "(" + strings.Join(all, " || ") + ")"
	case not:
		return "!" + all[0]
	}
	c := n.condition
	text := []string{c.field.name, strconv.Itoa(int(c.op)), strconv.FormatBool(c.negated)}
	for _, literal := range c.literals {
		exact, ok := AppendExact(nil, literal)
		if !ok {
			exact = literal
		}
		text = append(text, string(exact))
	}
	return strings.Join(text, " ")
}

// meaning is that of an expression in CEL, if it is a condition of a filter.
func meaning(e ast.Expr) (string, bool) {
	if e.Kind() != ast.CallKind {
		return "", false
	}
	call := e.AsCall()
	args := call.Args()
	condition := func(field ast.Expr, op operator, negated bool, suffix string, literals ...ast.Expr) (string, bool) {
		name, ok := nameOf(field)
		text := []string{name + suffix, strconv.Itoa(int(op)), strconv.FormatBool(negated)}
		for _, literal := range literals {
			value, is := valueOf(literal)
			ok = ok && is && (op == equals || op == hasPrefix && value[0] == '"' ||
				op != hasPrefix && strings.ContainsAny(value[:1], `"0+-`))
			text = append(text, value)
		}
		return strings.Join(text, " "), ok
	}
	switch name := call.FunctionName(); name {
	case operators.LogicalAnd, operators.LogicalOr:
		var all []string
		var flatten func(ast.Expr) bool
		flatten = func(e ast.Expr) bool { // CEL balances what is joined
			if e.Kind() == ast.CallKind && e.AsCall().FunctionName() == name {
				return flatten(e.AsCall().Args()[0]) && flatten(e.AsCall().Args()[1])
			}
			text, ok := meaning(e)
			if name == operators.LogicalAnd {
				text = strings.TrimSuffix(strings.TrimPrefix(text, "("), ")")
			}
			all = append(all, text)
			return ok
		}
		ok := flatten(e)
		return "(" +
			strings.Join(all, map[string]string{operators.LogicalAnd: " && ", operators.LogicalOr: " || "}[name]) +
			")", ok
	case operators.LogicalNot:
		inner, ok := meaning(args[0])
		return "!" + inner, ok
	case operators.In:
		if args[1].Kind() == ast.ListKind {
			return condition(args[0], equals, false, "", args[1].AsList().Elements()...)
		}
		return condition(args[1], equals, false, "[]", args[0])
	case "has":
		if call.IsMemberFunction() || len(args) != 1 {
			return "", false
		}
		return condition(args[0], present, false, "")
	case "startsWith":
		if !call.IsMemberFunction() || len(args) != 1 {
			return "", false
		}
		return condition(call.Target(), hasPrefix, false, "", args[0])
	default:
		op, ok := map[string]operator{
			operators.Equals: equals, operators.NotEquals: equals, operators.Less: less,
			operators.LessEquals: lessOrEqual, operators.Greater: greater, operators.GreaterEquals: greaterOrEqual,
		}[name]
		if !ok {
			return "", false
		}
		if _, isField := nameOf(args[0]); !isField {
			args[0], args[1], op = args[1], args[0], op.mirrored()
		}
		return condition(args[0], op, name == operators.NotEquals, "", args[1])
	}
}

// nameOf is the name of a field that an expression of CEL is.
func nameOf(e ast.Expr) (string, bool) {
	var names []string
	for {
		switch e.Kind() {
		case ast.IdentKind:
			names = append([]string{e.AsIdent()}, names...)
			f, ok := part{names: names}.asField()
			return f.name, ok
		case ast.SelectKind:
			names, e = append([]string{e.AsSelect().FieldName()}, names...), e.AsSelect().Operand()
		case ast.CallKind:
			call := e.AsCall()
			if call.FunctionName() != operators.Index || call.Args()[1].Kind() != ast.LiteralKind {
				return "", false
			}
			name, ok := call.Args()[1].AsLiteral().(types.String)
			if !ok {
				return "", false
			}
			names, e = append([]string{string(name)}, names...), call.Args()[0]
		default:
			return "", false
		}
	}
}

// valueOf is the value of a literal of CEL, as AppendExact has it.
func valueOf(e ast.Expr) (string, bool) {
	negative := false
	for e.Kind() == ast.CallKind && e.AsCall().FunctionName() == operators.Negate && !negative {
		negative, e = true, e.AsCall().Args()[0]
	}
	if e.Kind() != ast.LiteralKind {
		return "", false
	}
	var text string
	switch v := e.AsLiteral().(type) {
	case types.String:
		text = string(object.AppendString(nil, string(v)))
	case types.Int:
		text = strconv.FormatInt(int64(v), 10)
	case types.Uint:
		text = strconv.FormatUint(uint64(v), 10)
	case types.Double:
		text = strconv.FormatFloat(float64(v), 'g', -1, 64)
	case types.Bool:
		text = strconv.FormatBool(bool(v))
	case types.Null:
		return "null", !negative
	default:
		return "", false
	}
	if negative {
		if kindOf([]byte(text)) != '0' || text[0] == '-' {
			return "", false
		}
		text = "-" + text
	}
	exact, ok := AppendExact(nil, []byte(text))
	return string(exact), ok
}

// FuzzFilterText: no text is too hard to be parsed or refused.
func FuzzFilterText(f *testing.F) {
	for _, seed := range fragments {
		f.Add(seed + ` == "x"`)
	}
	f.Add(`created > "2026-01-02T15:04:05.6789999+02:00" || !(a in [1e400, "\ud83d\ude00\/"])`)
	f.Fuzz(func(t *testing.T, text string) {
		n, err := parseFilter(text)
		if err == nil && n != nil {
			n.match(object.Object{"a": []byte("1"), "created": []byte(`"2026-01-02T15:04:05.678900Z"`)})
		}
	})
}
