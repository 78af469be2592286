package policy

import (
	"slices"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
)

// dependsOn reports whether an expression is about the object, or the variable of a loop over its values, and whether
// it is about the caller or the time.
func (s *selectorCompiler) dependsOn(e ast.Expr, variable string) (object, caller bool) {
	for _, ident := range ast.MatchDescendants(ast.NavigateExpr(s.tree, e), ast.KindMatcher(ast.IdentKind)) {
		switch name := ident.AsIdent(); {
		case name == isOwner, name == "input":
			return true, true
		case name == "object", name == variable:
			object = true
		case isVariable(name), slices.Contains(s.callers, name):
			caller = true
		}
	}
	return object, caller
}

// compile compiles a part of the rule.
func (s *selectorCompiler) compile(e ast.Expr) (cel.Program, bool) {
	part := ast.NewCheckedAST(ast.NewAST(e, s.tree.SourceInfo()), s.tree.TypeMap(), s.tree.ReferenceMap())
	program, err := s.env.PlanProgram(part, programOptions(cel.InterruptCheckFrequency(checkEvery))...)
	return program, err == nil
}

// compileCallerValue compiles a part that depends only on the caller.
func (s *selectorCompiler) compileCallerValue(e ast.Expr) (callerValue, bool) {
	program, ok := s.compile(e)
	return func(c *collector) (ref.Val, error) { return c.value(program) }, ok
}

func isIterable(value ref.Val) bool {
	_, is := value.(traits.Iterable)
	return is
}

// ofLoop is list.exists(x, expression).
func (s *selectorCompiler) ofLoop(e ast.Expr) (truthSelections, bool) {
	c := e.AsComprehension()
	body, ok := existsOf(c)
	if !ok || isVariable(c.IterVar()) || slices.Contains(s.callers, c.IterVar()) {
		return s.noTerms(e)
	}
	object, caller := s.dependsOn(c.IterRange(), "")
	if object && caller {
		return s.noTerms(e)
	}
	if object {
		list, ok := s.compile(c.IterRange())
		if !ok {
			return s.noTerms(e)
		}
		yes, ok := s.selectWithin(body, origin{list: list, variable: c.IterVar()})
		if !ok {
			return s.noTerms(e)
		}
		return truthSelections{ifTrue: yes}, true
	}
	list, ok := s.compileCallerValue(c.IterRange())
	if !ok {
		return s.noTerms(e)
	}
	s.callers = append(s.callers, c.IterVar())
	all, ok := s.truthOf(body)
	s.callers = s.callers[:len(s.callers)-1]
	return truthSelections{
		ifTrue:  forEachElement(list, c.IterVar(), all.ifTrue, anyOf),
		ifFalse: forEachElement(list, c.IterVar(), all.ifFalse, allOf),
	}, ok
}

// existsOf returns the expression of exists.
func existsOf(c ast.ComprehensionExpr) (ast.Expr, bool) {
	isAccu := func(e ast.Expr) bool { return e.Kind() == ast.IdentKind && e.AsIdent() == c.AccuVar() }
	isFalse := c.AccuInit().Kind() == ast.LiteralKind && c.AccuInit().AsLiteral() == types.False
	if c.IterVar2() != "" || !isFalse || !isAccu(c.Result()) || c.LoopStep().Kind() != ast.CallKind {
		return nil, false
	}
	step := c.LoopStep().AsCall()
	if step.FunctionName() != operators.LogicalOr || !isAccu(step.Args()[0]) {
		return nil, false
	}
	return step.Args()[1], true
}

// forEachElement makes a choice for each element of a list of the caller.
func forEachElement(
	list callerValue, variable string, of callerSelection, by func(...Selection) Selection,
) callerSelection {
	if of == nil {
		return nil
	}
	return func(c *collector) (Selection, error) {
		value, err := list(c)
		if err != nil || !isIterable(value) {
			return Selection{}, err
		}
		outer, shadows := c.variables[variable]
		defer func() {
			if delete(c.variables, variable); shadows {
				c.variables[variable] = outer
			}
		}()
		var all []Selection
		for element := range elementsOf(value) {
			c.variables[variable] = element
			one, err := of(c)
			if err != nil {
				return Selection{}, err
			}
			all = append(all, one)
		}
		return by(all...), nil
	}
}

// selectWithin is for which objects an expression is true of an element of a list that they have.
func (s *selectorCompiler) selectWithin(e ast.Expr, in origin) (callerSelection, bool) {
	object, caller := s.dependsOn(e, in.variable)
	switch {
	case !caller:
		in.conditions = append(slices.Clone(in.conditions), nil)
		var ok bool
		in.conditions[len(in.conditions)-1], ok = s.compile(e)
		return s.known(s.selector.add(in)), ok
	case !object:
		of, ok := s.ofCaller(e)
		return allSelections(of.ifTrue, s.known(s.selector.add(in))), ok
	case e.Kind() != ast.CallKind:
		return nil, false
	}
	call := e.AsCall()
	switch function := call.FunctionName(); function {
	case operators.LogicalOr:
		var all []callerSelection
		for _, arg := range call.Args() {
			one, ok := s.selectWithin(arg, in)
			if !ok {
				return nil, false
			}
			all = append(all, one)
		}
		return anySelection(all...), true
	case operators.LogicalAnd:
		return s.selectWithinBoth(call.Args()[0], call.Args()[1], in)
	case operators.Equals, operators.In:
		is, ok := s.compare(function, call.Args()[0], call.Args()[1], in)
		return is.ifTrue, ok
	}
	return nil, false
}

// selectWithinBoth is within for two expressions, of which one at most is about both the object and the caller.
func (s *selectorCompiler) selectWithinBoth(a, b ast.Expr, in origin) (callerSelection, bool) {
	for _, of := range [][2]ast.Expr{{a, b}, {b, a}} {
		object, caller := s.dependsOn(of[0], in.variable)
		switch {
		case !caller:
			condition, ok := s.compile(of[0])
			if !ok {
				return nil, false
			}
			in.conditions = append(slices.Clone(in.conditions), condition)
			return s.selectWithin(of[1], in)
		case !object:
			one, ok := s.ofCaller(of[0])
			if !ok {
				return nil, false
			}
			other, ok := s.selectWithin(of[1], in)
			return allSelections(one.ifTrue, other), ok
		}
	}
	return nil, false
}

func (*selectorCompiler) known(at int) callerSelection {
	return func(*collector) (Selection, error) { return Selection{Term: knownOf(at)}, nil }
}
