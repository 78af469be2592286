package policy

import (
	"context"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
)

// Value is a value of a field of objects, as compact JSON.
type Value struct {
	Field string
	JSON  []byte
}

// Needs are values of which an object has at least one if a rule allows it. Without values the rule allows none.
type Needs struct {
	Values []Value
	Varies bool // their number depends on the user's data: elements of a list
}

// neededValue are values of the objects for which a rule holds: the rule without its conditions on objects.
type neededValue struct {
	field      string          // "": the rule may hold for any object
	conditions []userCondition // from the outer to the inner one

	literal    []byte      // the value is this one,
	userField  string      // or those of a field of the user,
	expression cel.Program // or those of an expression over the user, the time and the variables of the loops
	elements   bool        // the values are the elements of that
}

// userCondition is a condition on the user, or a loop over the user's values.
type userCondition struct {
	program  cel.Program
	variable string // of a loop over the value of the program; "": the value is to be true
}

func (n *neededValue) varies() bool {
	if n.elements {
		return true
	}
	for _, s := range n.conditions {
		if s.variable != "" {
			return true
		}
	}
	return false
}

// Values returns the values that an object needs if the rule of an operation is to allow it for a user at a time, and
// false if the rule may allow others too. An error is that of an ended context or a spent budget: see Allow.
func (p *Policy) Values(ctx context.Context, op Op, in Input) (Needs, bool, error) {
	all, ok := p.neededValues(op)
	if !ok {
		return Needs{}, false, nil
	}
	c := newCollector(ctx, in)
	for i := range all {
		c.found.Varies = c.found.Varies || all[i].varies()
		if err := c.collect(&all[i], all[i].conditions); err != nil {
			return Needs{}, false, err
		}
		if c.any {
			return Needs{}, false, nil
		}
	}
	return c.found, true, nil
}

// ValueFields returns the fields of Values for an operation.
func (p *Policy) ValueFields(op Op) []string {
	all, ok := p.neededValues(op)
	if !ok {
		return nil
	}
	var fields []string
	for _, n := range all {
		if n.field != "" {
			fields = append(fields, n.field)
		}
	}
	return fields
}

func (p *Policy) neededValues(op Op) ([]neededValue, bool) {
	if r := p.ruleFor(op); r != nil {
		return r.neededValues, r.isNarrow
	}
	return []neededValue{p.ownedByUser(), {field: "public", literal: []byte("true")}}, p.ownersRules
}

func (p *Policy) ownedByUser() neededValue { return neededValue{field: p.owner, userField: "uuid"} }

// collector evaluates the parts of a rule about a user.
type collector struct {
	ctx       context.Context
	in        Input
	variables plainVariables
	found     Needs
	any       bool // any object may be allowed
}

func newCollector(ctx context.Context, in Input) *collector {
	return &collector{ctx: ctx, in: in, variables: plainVariables{
		"user": recordOf(in.User), sessionVariable: in.Session.value(), "now": types.Timestamp{Time: in.Now},
	}}
}

// collect adds values, if the further conditions are met.
func (c *collector) collect(n *neededValue, conditions []userCondition) error {
	if len(conditions) == 0 {
		return c.add(n)
	}
	value, err := c.value(conditions[0].program)
	if err != nil {
		return err
	}
	name := conditions[0].variable
	if name == "" {
		if value != types.True {
			return nil
		}
		return c.collect(n, conditions[1:])
	}
	outer, shadows := c.variables[name]
	for element := range elementsOf(value) {
		c.variables[name] = element
		if err := c.collect(n, conditions[1:]); err != nil {
			return err
		}
	}
	if delete(c.variables, name); shadows {
		c.variables[name] = outer
	}
	return nil
}

func (c *collector) add(n *neededValue) error {
	switch {
	case n.field == "":
		c.any = true
	case n.literal != nil:
		c.found.Values = append(c.found.Values, Value{n.field, n.literal})
	case n.userField != "":
		if value := c.in.User[n.userField]; value != nil { // else the comparison fails
			c.found.Values = append(c.found.Values, Value{n.field, value})
		}
	default:
		value, err := c.value(n.expression)
		if err != nil {
			return err
		}
		if !n.elements {
			c.addValue(n.field, value)
			return nil
		}
		for element := range elementsOf(value) {
			c.addValue(n.field, element)
		}
	}
	return nil
}

// addValue adds a value, if one of an object can be equal to it.
func (c *collector) addValue(field string, value ref.Val) {
	switch value.(type) {
	case nil, types.Bytes, types.Duration, types.Timestamp: // nil: a value that can't be evaluated is equal to nothing
		return
	case traits.Mapper, traits.Lister:
		// Indexes have all of them alike.
		c.found.Values = append(c.found.Values, Value{field, []byte("[]")})
		return
	}
	text, err := appendScalar(nil, value)
	if err != nil {
		c.any = true
		return
	}
	c.found.Values = append(c.found.Values, Value{field, text})
}

// value evaluates an expression; nil if that can't be done, which makes the rule deny.
func (c *collector) value(program cel.Program) (ref.Val, error) {
	if err := c.in.Budget.Check(); err != nil {
		return nil, err
	}
	out, details, err := program.ContextEval(c.ctx, c.variables)
	c.in.Budget.spend(details.ActualCost())
	if c.ctx.Err() != nil {
		return nil, c.ctx.Err()
	}
	if err != nil {
		return nil, nil //nolint:nilerr // the rule is not true
	}
	return out, nil
}

// elementsOf iterates over a value like a rule's loops and `in`: the elements of a list, the names of a map.
func elementsOf(value ref.Val) func(yield func(ref.Val) bool) {
	return func(yield func(ref.Val) bool) {
		list, ok := value.(traits.Iterable)
		if !ok {
			return
		}
		for it := list.Iterator(); it.HasNext() == types.True; {
			if !yield(it.Next()) {
				return
			}
		}
	}
}
