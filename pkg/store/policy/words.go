package policy

import (
	"slices"
	"strings"
	"sync"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
)

// InWords says in words when an expression is true of an operation: "the owner, or users whose role is "editor"". It
// returns "" for an expression of which it does not recognize every part. admins is the rule by which users are admins,
// "" for none.
//
// It never says that somebody may do what they may not. An expression that can't be evaluated, such as one about a
// missing field, is not true, and neither is its negation: so it negates only parts that always can be evaluated, and
// comparisons.
func InWords(expression string, op Op, admins string) string {
	tree := parsed(expression)
	if tree == nil {
		return ""
	}
	w := wording{tree: tree, op: op, admins: adminsRule(admins)}
	s, ok := w.say(tree.Expr(), false)
	if !ok {
		return ""
	}
	return s.sentence()
}

// adminsRule returns the rule of admins as a part of another rule has it; "" for one that might hold for others there.
func adminsRule(expression string) string {
	tree := parsed(expression)
	if tree == nil {
		return ""
	}
	w := wording{tree: tree, op: Get}
	if s, ok := w.leaf(tree.Expr(), false); !ok || !strings.HasPrefix(s.who, usersWhose) {
		return ""
	}
	return unparsed(tree, tree.Expr())
}

// OwnersInWords says in words what the owner's rules, which need no expression, say of an operation.
func OwnersInWords(op Op) string {
	switch op {
	case Create:
		return loggedIn
	case Get, List:
		return theOwner + ", or anybody if the object's public is true"
	default:
		return theOwner
	}
}

// writtenEnvironment parses expressions such that they can be written again, loops included.
var writtenEnvironment = sync.OnceValues(func() (*cel.Env, error) {
	env, err := environment()
	if err != nil {
		return nil, err
	}
	return env.Extend(cel.EnableMacroCallTracking())
})

// parsed returns an expression as it is written; nil if it can't be parsed.
func parsed(expression string) *ast.AST {
	env, err := writtenEnvironment()
	if err != nil || strings.TrimSpace(expression) == "" {
		return nil
	}
	tree, issues := env.Parse(expression)
	if issues.Err() != nil {
		return nil
	}
	return tree.NativeRep()
}

// Phrases.
const (
	anybody    = "anybody"
	nobody     = "nobody"
	theOwner   = "the owner"
	loggedIn   = "logged-in users"
	strangers  = "callers who are not logged in"
	usersWhose = "users whose "
)

// saying is an expression in words.
type saying struct {
	kind sayingKind
	who  string   // for whom it is true, if that is all it asks: "logged-in users"
	when string   // the condition as a clause: "the caller is logged in"
	of   []saying // of several
}

type sayingKind int

const (
	single sayingKind = iota
	always
	never
	allOfThem
	anyOfThem
)

// sentence returns the words for a whole rule.
func (s saying) sentence() string {
	if s.kind != anyOfThem {
		return s.alternative()
	}
	var all []string
	for _, one := range s.of {
		all = append(all, one.alternative())
	}
	return strings.Join(all, ", or ")
}

// alternative returns the words for a part without which the rule may hold.
func (s saying) alternative() string {
	switch {
	case s.kind == always:
		return anybody
	case s.kind == never:
		return nobody
	case s.kind == single && s.who != "":
		return s.who
	case s.kind == allOfThem:
		who, rest := anybody, slices.Clone(s.of)
		if i := slices.IndexFunc(rest, func(one saying) bool { return one.kind == single && one.who != "" }); i >= 0 {
			who = rest[i].who
			rest = slices.Delete(rest, i, i+1)
		}
		return who + " if " + saying{kind: allOfThem, of: rest}.clause()
	default:
		return anybody + " if " + s.clause()
	}
}

// clause returns the words for a condition.
func (s saying) clause() string {
	word := " and "
	switch s.kind {
	case anyOfThem:
		word = " or "
	case allOfThem:
	default:
		return s.when
	}
	var all []string
	for _, one := range s.of {
		text := one.clause()
		if one.kind == anyOfThem || one.kind == allOfThem {
			text = "(" + text + ")"
		}
		all = append(all, text)
	}
	return strings.Join(all, word)
}

// wording says an expression in words.
type wording struct {
	tree   *ast.AST
	op     Op
	admins string
}

// say returns the words for an expression, or for its negation.
func (w *wording) say(x ast.Expr, negated bool) (saying, bool) {
	if !negated && w.admins != "" && unparsed(w.tree, x) == w.admins {
		return saying{who: "admins", when: "the caller is an admin"}, true
	}
	switch x.Kind() {
	case ast.LiteralKind:
		value, ok := x.AsLiteral().(types.Bool)
		return constantSaying(bool(value) != negated), ok
	case ast.CallKind:
		args := x.AsCall().Args()
		switch x.AsCall().FunctionName() {
		case operators.LogicalNot:
			return w.say(args[0], !negated)
		case operators.LogicalAnd:
			return w.both(args, negated, !negated)
		case operators.LogicalOr:
			return w.both(args, negated, negated)
		}
	}
	return w.leaf(x, negated)
}

func constantSaying(holds bool) saying {
	if holds {
		return saying{kind: always}
	}
	return saying{kind: never}
}

// both returns the words for two expressions of which all, or any, are to hold.
func (w *wording) both(args []ast.Expr, negated, all bool) (saying, bool) {
	kind, neutral, decisive := anyOfThem, never, always
	if all {
		kind, neutral, decisive = allOfThem, always, never
	}
	out := saying{kind: kind}
	for _, arg := range args {
		s, ok := w.say(arg, negated)
		if !ok {
			return saying{}, false
		}
		switch s.kind {
		case decisive:
			return s, w.recognizes(args, negated)
		case neutral:
		case kind:
			out.of = append(out.of, s.of...)
		default:
			out.of = append(out.of, s)
		}
	}
	switch len(out.of) {
	case 0:
		return saying{kind: neutral}, true
	case 1:
		return out.of[0], true
	}
	return out, true
}

// recognizes reports whether there are words for all expressions.
func (w *wording) recognizes(all []ast.Expr, negated bool) bool {
	return !slices.ContainsFunc(all, func(x ast.Expr) bool { _, ok := w.say(x, negated); return !ok })
}
