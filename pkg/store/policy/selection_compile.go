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

// Selector returns the selector of the rule of an operation that depends on the object. It returns a Problem for a
// part without terms: one that compares the object with the caller or the time other than by ==, != or in.
func (p *Policy) Selector(op Op) (*Selector, *Problem) {
	s := &Selector{}
	c := selectorCompiler{policy: p, selector: s}
	r := p.ruleFor(op)
	expression := ""
	switch {
	case r == nil && p.ownersRules:
		public := s.add(origin{field: "public"})
		s.allowed = anySelection(c.owner().ifTrue, c.has(public, constant(types.True)).ifTrue)
	case r != nil && len(r.linked) > 0:
		return nil, &Problem{Op: p.ruleOp(op), Line: 1, Column: 1, Message: "an index has no terms for linked objects"}
	case r == nil:
		s.allowed = func(*collector) (Selection, error) { return selectEvery(true), nil }
	case r.tree == nil:
		s.allowed, expression = c.owner().ifTrue, r.expression
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
		s.allowed, expression = all.ifTrue, r.expression
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %q %t %q", termsVersion, p.owner, r == nil, expression))
	s.key = hex.EncodeToString(sum[:8])
	return s, nil
}

func (s *Selector) add(of origin) int {
	s.origins = append(s.origins, of)
	return len(s.origins) - 1
}

// selectorCompiler makes a Selector of a rule.
type selectorCompiler struct {
	policy   *Policy
	selector *Selector
	env      *cel.Env
	tree     *ast.AST
	callers  []string // variables of loops over the caller's values
	failed   ast.Expr // the first part that has no terms
}

// truthSelections is for which objects an expression is true, and for which it is false: it is neither where it can't
// be evaluated.
type truthSelections struct {
	ifTrue  callerSelection
	ifFalse callerSelection // nil: it is not known
}

// callerValue returns a value that the caller has; nil if it can't be evaluated.
type callerValue func(*collector) (ref.Val, error)

func constant(value ref.Val) callerValue {
	return func(*collector) (ref.Val, error) { return value, nil }
}

func anySelection(all ...callerSelection) callerSelection { return combineSelections(anyOf, all) }

func allSelections(all ...callerSelection) callerSelection { return combineSelections(allOf, all) }

func combineSelections(by func(...Selection) Selection, all []callerSelection) callerSelection {
	if slices.ContainsFunc(all, func(c callerSelection) bool { return c == nil }) {
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
func (s *selectorCompiler) owner() truthSelections {
	owner := s.selector.add(origin{field: s.policy.owner})
	mine := func(c *collector) Selection {
		me, ok := c.in.User.Text("uuid")
		if !ok || me == "" {
			return Selection{}
		}
		return Selection{Term: termOf(owner, types.String(me))}
	}
	return truthSelections{
		func(c *collector) (Selection, error) { return mine(c), nil },
		func(c *collector) (Selection, error) { return selectNot(mine(c)), nil },
	}
}

// has is whether a origin has a value.
func (*selectorCompiler) has(at int, of callerValue) truthSelections {
	choose := func(found func(value ref.Val) Selection) callerSelection {
		return func(c *collector) (Selection, error) {
			value, err := of(c)
			if err != nil || value == nil {
				return Selection{}, err
			}
			return found(value), nil
		}
	}
	return truthSelections{
		choose(func(value ref.Val) Selection { return Selection{Term: termOf(at, value)} }),
		choose(func(value ref.Val) Selection { return knownWithout(at, Selection{Term: termOf(at, value)}) }),
	}
}

// knownWithout selects the objects for which a origin has something, without others.
func knownWithout(at int, others Selection) Selection {
	return allOf(Selection{Term: knownOf(at)}, selectNot(others))
}

// isIn is whether the value of a origin is in a list of the caller.
func (*selectorCompiler) isIn(at int, of callerValue) truthSelections {
	choose := func(found func(all Selection) Selection) callerSelection {
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
	return truthSelections{
		choose(func(all Selection) Selection { return all }),
		choose(func(all Selection) Selection { return knownWithout(at, all) }),
	}
}

// truthOf returns for which objects an expression is true or false; false if they have no terms for that.
func (s *selectorCompiler) truthOf(e ast.Expr) (truthSelections, bool) {
	switch object, caller := s.dependsOn(e, ""); {
	case !object:
		return s.ofCaller(e)
	case !caller:
		of, ok := s.compile(e)
		if !ok {
			return s.noTerms(e)
		}
		value := s.selector.add(origin{of: of})
		return truthSelections{s.has(value, constant(types.True)).ifTrue,
			s.has(value, constant(types.False)).ifTrue}, true
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
	return s.noTerms(e)
}

func (s *selectorCompiler) noTerms(e ast.Expr) (truthSelections, bool) {
	if s.failed == nil {
		s.failed = e
	}
	return truthSelections{}, false
}

func (s *selectorCompiler) problem(op Op) *Problem {
	at := s.tree.SourceInfo().GetStartLocation(s.failed.ID())
	return &Problem{Op: op, Line: at.Line(), Column: at.Column() + 1, Message: "an index has no terms for this"}
}

// ofCaller is an expression that no object changes.
func (s *selectorCompiler) ofCaller(e ast.Expr) (truthSelections, bool) {
	of, ok := s.compileCallerValue(e)
	if !ok {
		return s.noTerms(e)
	}
	is := func(wanted ref.Val) callerSelection {
		return func(c *collector) (Selection, error) {
			value, err := of(c)
			return selectEvery(err == nil && value == wanted), err
		}
	}
	return truthSelections{is(types.True), is(types.False)}, true
}

func (s *selectorCompiler) ofCall(e ast.Expr) (truthSelections, bool) {
	call := e.AsCall()
	args := call.Args()
	switch function := call.FunctionName(); function {
	case operators.LogicalOr, operators.LogicalAnd, operators.LogicalNot, operators.Conditional:
		var of []truthSelections
		for _, arg := range args {
			one, ok := s.truthOf(arg)
			if !ok {
				return truthSelections{}, false
			}
			of = append(of, one)
		}
		var all truthSelections
		switch function {
		case operators.LogicalNot:
			all = truthSelections{of[0].ifFalse, of[0].ifTrue}
		case operators.Conditional:
			all = truthSelections{
				anySelection(allSelections(of[0].ifTrue, of[1].ifTrue), allSelections(of[0].ifFalse, of[2].ifTrue)),
				anySelection(allSelections(of[0].ifTrue, of[1].ifFalse), allSelections(of[0].ifFalse, of[2].ifFalse)),
			}
		case operators.LogicalAnd:
			all = truthSelections{allSelections(trueSelections(of)...), anySelection(falseSelections(of)...)}
		default:
			all = truthSelections{anySelection(trueSelections(of)...), allSelections(falseSelections(of)...)}
		}
		if all.ifTrue == nil {
			return s.noTerms(e)
		}
		return all, true
	case operators.Equals, operators.NotEquals, operators.In:
		one, ok := s.compare(function, args[0], args[1], origin{})
		if !ok {
			return s.noTerms(e)
		}
		return one, true
	}
	return s.noTerms(e)
}

func trueSelections(all []truthSelections) (of []callerSelection) {
	for _, t := range all {
		of = append(of, t.ifTrue)
	}
	return of
}

func falseSelections(all []truthSelections) (of []callerSelection) {
	for _, t := range all {
		of = append(of, t.ifFalse)
	}
	return of
}

// compare is a comparison of the object's values with the caller's. The origin is the loop in which it is, if
// any.
func (s *selectorCompiler) compare(function string, a, b ast.Expr, in origin) (truthSelections, bool) {
	of, with := a, b
	if object, _ := s.dependsOn(a, in.variable); !object {
		of, with = b, a
	}
	if _, caller := s.dependsOn(of, in.variable); caller {
		return truthSelections{}, false
	}
	if object, _ := s.dependsOn(with, in.variable); object {
		return truthSelections{}, false
	}
	var ok, also bool
	in.of, ok = s.compile(of)
	value, also := s.compileCallerValue(with)
	if !ok || !also {
		return truthSelections{}, false
	}
	in.elements = function == operators.In && of.ID() == b.ID()
	at := s.selector.add(in)
	if function == operators.In && !in.elements {
		return s.isIn(at, value), true
	}
	is := s.has(at, value)
	if function == operators.NotEquals {
		is.ifTrue, is.ifFalse = is.ifFalse, is.ifTrue
	}
	return is, true
}
