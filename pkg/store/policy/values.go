package policy

import (
	"encoding/json"
	"slices"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"

	"belfry/pkg/store/object"
)

// Value is a value of a field of objects, as compact JSON.
type Value struct {
	Field string
	JSON  []byte
}

// needed is a value that objects have for which a rule holds: a literal, or what a field of the user has.
type needed struct {
	field   string
	literal []byte
	ofUser  string // the user's field; "" for a literal
}

// Values returns values of which an object has at least one if the rule of an operation allows it for a user, and
// false if the rule allows others too. No values: it allows nothing.
func (p *Policy) Values(op Op, user object.Object) ([]Value, bool) {
	all, ok := p.needed(op)
	if !ok {
		return nil, false
	}
	values := make([]Value, 0, len(all))
	for _, n := range all {
		switch {
		case n.ofUser == "":
			values = append(values, Value{n.field, n.literal})
		case user[n.ofUser] != nil: // else the comparison fails
			values = append(values, Value{n.field, user[n.ofUser]})
		}
	}
	return values, true
}

// ValueFields returns the fields of Values for an operation.
func (p *Policy) ValueFields(op Op) []string {
	all, ok := p.needed(op)
	if !ok {
		return nil
	}
	fields := make([]string, len(all))
	for i, n := range all {
		fields[i] = n.field
	}
	return fields
}

func (p *Policy) needed(op Op) ([]needed, bool) {
	if r := p.ruleFor(op); r != nil {
		return r.needed, r.isNarrow
	}
	return []needed{p.ownedByUser(), {field: "public", literal: []byte("true")}}, p.ownersRules
}

func (p *Policy) ownedByUser() needed { return needed{field: p.owner, ofUser: "uuid"} }

// maxNeeded bounds how many indexes a list reads.
const maxNeeded = 8

// neededBy returns values of which an object has at least one if an expression is true of it, and false if the
// expression can be true of any object. An operand of || that fails does not make the other one fail.
func (p *Policy) neededBy(e ast.Expr) ([]needed, bool) {
	switch e.Kind() {
	case ast.IdentKind:
		return []needed{p.ownedByUser()}, e.AsIdent() == isOwner
	case ast.LiteralKind:
		return nil, e.AsLiteral() == types.False
	case ast.SelectKind:
		field, ok := fieldOf(e, "object")
		return []needed{{field: field, literal: []byte("true")}}, ok
	case ast.CallKind:
		call := e.AsCall()
		if len(call.Args()) != 2 {
			return nil, false
		}
		a, b := call.Args()[0], call.Args()[1]
		switch call.FunctionName() {
		case operators.LogicalOr:
			first, ok := p.neededBy(a)
			second, also := p.neededBy(b)
			all := slices.Concat(first, second)
			return all, ok && also && len(all) <= maxNeeded
		case operators.LogicalAnd:
			first, ok := p.neededBy(a)
			second, also := p.neededBy(b)
			if !ok || also && len(second) < len(first) {
				return second, also
			}
			return first, true
		case operators.Equals:
			if n, ok := equality(a, b); ok {
				return []needed{n}, true
			}
			n, ok := equality(b, a)
			return []needed{n}, ok
		}
	}
	return nil, false
}

// equality returns the value that object.field has if it is equal to other.
func equality(field, other ast.Expr) (needed, bool) {
	name, ok := fieldOf(field, "object")
	if !ok {
		return needed{}, false
	}
	if ofUser, ok := fieldOf(other, "user"); ok {
		return needed{field: name, ofUser: ofUser}, true
	}
	if other.Kind() != ast.LiteralKind {
		return needed{}, false
	}
	switch value := other.AsLiteral().(type) {
	case types.Bool, types.Int, types.Uint, types.Double, types.String:
		literal, err := json.Marshal(value.Value())
		return needed{field: name, literal: literal}, err == nil
	default:
		return needed{}, false
	}
}

// fieldOf returns the field that an expression selects from a variable.
func fieldOf(e ast.Expr, variable string) (string, bool) {
	if e.Kind() != ast.SelectKind || e.AsSelect().IsTestOnly() {
		return "", false
	}
	of := e.AsSelect().Operand()
	return e.AsSelect().FieldName(), of.Kind() == ast.IdentKind && of.AsIdent() == variable
}
