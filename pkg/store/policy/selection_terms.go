package policy

import (
	"context"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"

	"belfry/pkg/object"
)

// origin is a part of a rule that depends only on the object: objects have a term for each of its values.
type origin struct {
	field      string        // the value is that of a field,
	of         cel.Program   // or of an expression; nil: there is no expression, and no value
	list       cel.Program   // not nil: a loop over this, in which the expression
	variable   string        // knows each element by this name,
	conditions []cel.Program // of those that meet these
	elements   bool          // the values are the elements of the value
}

// Terms returns the terms of an object. An error is that of an ended context.
func (s *Selector) Terms(ctx context.Context, o object.Object) ([]string, error) {
	t := termsOf{ctx: ctx, object: o, variables: plainVariables{"object": recordOf(o)}, seen: map[string]bool{}}
	for i := range s.origins {
		t.origin(i, &s.origins[i])
	}
	return t.all, ctx.Err()
}

type termsOf struct {
	ctx       context.Context
	object    object.Object
	variables plainVariables
	all       []string
	seen      map[string]bool
}

func (t *termsOf) add(term string) {
	if !t.seen[term] {
		t.seen[term] = true
		t.all = append(t.all, term)
	}
}

func (t *termsOf) origin(i int, s *origin) {
	if s.list == nil {
		t.values(i, s)
		return
	}
	list := t.evaluate(s.list)
	outer, shadows := t.variables[s.variable]
	for element := range elementsOf(list) {
		if t.ctx.Err() != nil {
			break
		}
		t.variables[s.variable] = element
		t.values(i, s)
	}
	if delete(t.variables, s.variable); shadows {
		t.variables[s.variable] = outer
	}
}

// values adds the terms of a origin, if its conditions are met.
func (t *termsOf) values(i int, s *origin) {
	for _, condition := range s.conditions {
		if t.evaluate(condition) != types.True {
			return
		}
	}
	var value ref.Val
	switch {
	case s.field != "":
		if text := t.object[s.field]; text != nil {
			value = convert(text)
		}
	case s.of == nil:
		t.add(knownOf(i))
		return
	default:
		value = t.evaluate(s.of)
	}
	switch _, iterable := value.(traits.Iterable); {
	case value == nil || s.elements && !iterable:
	case s.elements:
		t.add(knownOf(i))
		for element := range elementsOf(value) {
			t.add(termOf(i, element))
		}
	default:
		t.add(knownOf(i))
		t.add(termOf(i, value))
	}
}

// evaluate returns the value of an expression; nil if it can't be evaluated, in which case the rule denies.
func (t *termsOf) evaluate(program cel.Program) ref.Val {
	out, _, err := program.ContextEval(t.ctx, t.variables)
	if err != nil {
		return nil
	}
	return out
}
