package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
)

// termsVersion is how terms are made of objects: see Selector.Key.
const termsVersion = 1

// Selector returns that of the rule of an operation that depends on the object, or what of the rule has no terms: a part
// that compares the object with the caller or the time in another way than by ==, != or in.
func (p *Policy) Selector(op Op) (*Selector, *Problem) {
	s := &Selector{}
	c := selecting{policy: p, selector: s}
	r := p.ruleFor(op)
	expression := ""
	switch {
	case r == nil && p.ownersRules:
		public := s.add(origin{field: "public"})
		s.allowed = either(c.owner().yes, c.has(public, always(types.True)).yes)
	case r == nil:
		s.allowed = func(*collector) (Selection, error) { return every(true), nil }
	case r.tree == nil:
		s.allowed, expression = c.owner().yes, r.expression
	default:
		var err error
		if c.env, err = environment(); err != nil {
			return nil, &Problem{Op: p.ruleOp(op), Line: 1, Column: 1, Message: err.Error()}
		}
		c.tree = r.tree
		all, ok := c.truthOf(c.tree.Expr())
		if !ok {
			return nil, c.problem(p.ruleOp(op))
		}
		s.allowed, expression = all.yes, r.expression
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %q %t %q", termsVersion, p.owner, r == nil, expression))
	s.key = hex.EncodeToString(sum[:8])
	return s, nil
}

func (s *Selector) add(of origin) int {
	s.origins = append(s.origins, of)
	return len(s.origins) - 1
}

// selecting makes a Selector of a rule.
type selecting struct {
	policy   *Policy
	selector *Selector
	env      *cel.Env
	tree     *ast.AST
	callers  []string // variables of loops over what the caller has
	failed   ast.Expr // the first part that has no terms
}

// truth is for which objects an expression is true, and for which it is false: it is neither where it can't be evaluated.
type truth struct {
	yes choice
	no  choice // nil: it is not known
}

// given returns a value that the caller has; nil if it can't be evaluated.
type given func(*collector) (ref.Val, error)

func always(value ref.Val) given { return func(*collector) (ref.Val, error) { return value, nil } }

func either(all ...choice) choice { return combine(anyOf, all) }

func both(all ...choice) choice { return combine(allOf, all) }

func combine(by func(...Selection) Selection, all []choice) choice {
	if slices.ContainsFunc(all, func(c choice) bool { return c == nil }) {
		return nil
	}
	return func(c *collector) (Selection, error) {
		var found []Selection
		for _, one := range all {
			s, err := one(c)
			if err != nil {
				return Selection{}, err
			}
			found = append(found, s)
		}
		return by(found...), nil
	}
}

// owner is whether the object is the caller's.
func (s *selecting) owner() truth {
	owner := s.selector.add(origin{field: s.policy.owner})
	mine := func(c *collector) Selection {
		me, ok := c.in.User.Text("uuid")
		if !ok || me == "" {
			return Selection{}
		}
		return Selection{Term: termOf(owner, types.String(me))}
	}
	return truth{
		func(c *collector) (Selection, error) { return mine(c), nil },
		func(c *collector) (Selection, error) { return not(mine(c)), nil },
	}
}

// has is whether a origin has a value.
func (*selecting) has(at int, of given) truth {
	choose := func(found func(value ref.Val) Selection) choice {
		return func(c *collector) (Selection, error) {
			value, err := of(c)
			if err != nil || value == nil {
				return Selection{}, err
			}
			return found(value), nil
		}
	}
	return truth{
		choose(func(value ref.Val) Selection { return Selection{Term: termOf(at, value)} }),
		choose(func(value ref.Val) Selection { return butNot(at, Selection{Term: termOf(at, value)}) }),
	}
}

// butNot selects the objects for which a origin has something, without others.
func butNot(at int, others Selection) Selection {
	return allOf(Selection{Term: knownOf(at)}, not(others))
}

// isIn is whether the value of a origin is in a list of the caller.
func (*selecting) isIn(at int, of given) truth {
	choose := func(found func(all Selection) Selection) choice {
		return func(c *collector) (Selection, error) {
			list, err := of(c)
			if err != nil || !isIterable(list) {
				return Selection{}, err
			}
			var all []Selection
			for element := range elementsOf(list) {
				all = append(all, Selection{Term: termOf(at, element)})
			}
			return found(anyOf(all...)), nil
		}
	}
	return truth{
		choose(func(all Selection) Selection { return all }),
		choose(func(all Selection) Selection { return butNot(at, all) }),
	}
}

// truthOf returns for which objects an expression is true or false; false if they have no terms for that.
func (s *selecting) truthOf(e ast.Expr) (truth, bool) {
	switch object, caller := s.knows(e, ""); {
	case !object:
		return s.ofCaller(e)
	case !caller:
		of, ok := s.program(e)
		if !ok {
			return s.fail(e)
		}
		value := s.selector.add(origin{of: of})
		return truth{s.has(value, always(types.True)).yes, s.has(value, always(types.False)).yes}, true
	}
	switch e.Kind() {
	case ast.IdentKind: // isOwner, of which knows says that it is about both
		if e.AsIdent() == isOwner {
			return s.owner(), true
		}
	case ast.ComprehensionKind:
		return s.ofLoop(e)
	case ast.CallKind:
		return s.ofCall(e)
	}
	return s.fail(e)
}

func (s *selecting) fail(e ast.Expr) (truth, bool) {
	if s.failed == nil {
		s.failed = e
	}
	return truth{}, false
}

func (s *selecting) problem(op Op) *Problem {
	at := s.tree.SourceInfo().GetStartLocation(s.failed.ID())
	return &Problem{Op: op, Line: at.Line(), Column: at.Column() + 1, Message: "an index has no terms for this"}
}

// ofCaller is an expression that no object changes.
func (s *selecting) ofCaller(e ast.Expr) (truth, bool) {
	of, ok := s.given(e)
	if !ok {
		return s.fail(e)
	}
	is := func(wanted ref.Val) choice {
		return func(c *collector) (Selection, error) {
			value, err := of(c)
			return every(err == nil && value == wanted), err
		}
	}
	return truth{is(types.True), is(types.False)}, true
}

func (s *selecting) ofCall(e ast.Expr) (truth, bool) {
	call := e.AsCall()
	args := call.Args()
	switch function := call.FunctionName(); function {
	case operators.LogicalOr, operators.LogicalAnd, operators.LogicalNot, operators.Conditional:
		var of []truth
		for _, arg := range args {
			one, ok := s.truthOf(arg)
			if !ok {
				return truth{}, false
			}
			of = append(of, one)
		}
		var all truth
		switch function {
		case operators.LogicalNot:
			all = truth{of[0].no, of[0].yes}
		case operators.Conditional:
			all = truth{
				either(both(of[0].yes, of[1].yes), both(of[0].no, of[2].yes)),
				either(both(of[0].yes, of[1].no), both(of[0].no, of[2].no)),
			}
		case operators.LogicalAnd:
			all = truth{both(yesOf(of)...), either(noOf(of)...)}
		default:
			all = truth{either(yesOf(of)...), both(noOf(of)...)}
		}
		if all.yes == nil {
			return s.fail(e)
		}
		return all, true
	case operators.Equals, operators.NotEquals, operators.In:
		one, ok := s.compare(function, args[0], args[1], origin{})
		if !ok {
			return s.fail(e)
		}
		return one, true
	}
	return s.fail(e)
}

func yesOf(all []truth) (of []choice) {
	for _, t := range all {
		of = append(of, t.yes)
	}
	return of
}

func noOf(all []truth) (of []choice) {
	for _, t := range all {
		of = append(of, t.no)
	}
	return of
}

// compare is a comparison of what the object has with what the caller has. The origin is the loop in which it is, if any.
func (s *selecting) compare(function string, a, b ast.Expr, in origin) (truth, bool) {
	of, with := a, b
	if object, _ := s.knows(a, in.variable); !object {
		of, with = b, a
	}
	if _, caller := s.knows(of, in.variable); caller {
		return truth{}, false
	}
	if object, _ := s.knows(with, in.variable); object {
		return truth{}, false
	}
	var ok, also bool
	in.of, ok = s.program(of)
	value, also := s.given(with)
	if !ok || !also {
		return truth{}, false
	}
	in.elements = function == operators.In && of.ID() == b.ID()
	at := s.selector.add(in)
	if function == operators.In && !in.elements {
		return s.isIn(at, value), true
	}
	is := s.has(at, value)
	if function == operators.NotEquals {
		is.yes, is.no = is.no, is.yes
	}
	return is, true
}
