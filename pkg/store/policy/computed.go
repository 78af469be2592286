package policy

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/interpreter"

	"belfry/pkg/object"
)

// Limits of the value of a computed field. They limit the size of a write's index keys and of its event.
const (
	MaxComputedBytes    = 16 << 10
	MaxComputedElements = 256 // of an array
)

// Known has the known properties of the fields that expressions of computed fields can read.
type Known struct {
	Types  map[string]string // type by field as in a JSON Schema; "": unknown
	Closed bool              // there are no other fields
	Arrays []string          // fields that are empty arrays where they are absent

	Suggest func(name string) string // advice for an unknown name; may be nil
}

// ComputedProblem is an error in the expression of a computed field.
type ComputedProblem struct {
	Field string
	Problem
}

// Computed are the compiled computed fields of one store. Each depends only on the object: it sees neither a
// user nor the time, and its cost limit is counted, not measured. So every process computes the same for the
// same object, at any time. It is immutable; nil has no fields.
type Computed struct {
	fields []computed // each after those that it reads
	known  Known
}

type computed struct {
	name, expression string
	program          cel.Program
	reads            []string // fields, computed ones included
	kind             string   // as in a JSON Schema; "": any
}

// CompileComputed compiles and type-checks expressions by the names of their fields. The result is nil when there
// are problems.
func CompileComputed(expressions map[string]string, known Known) (*Computed, []ComputedProblem) {
	if len(expressions) == 0 {
		return nil, nil
	}
	known.Types = maps.Clone(known.Types)
	if known.Types == nil {
		known.Types = map[string]string{}
	}
	for _, array := range known.Arrays {
		known.Types[array] = "array"
	}
	for name := range expressions {
		known.Types[name] = ""
	}
	c := &Computed{known: known}
	var problems []ComputedProblem
	trees := map[string]*unchecked{}
	for _, name := range slices.Sorted(maps.Keys(expressions)) {
		tree, found := parseComputed(expressions[name], known)
		for _, p := range found {
			problems = append(problems, ComputedProblem{name, p})
		}
		trees[name] = tree
	}
	if len(problems) > 0 {
		return nil, problems
	}
	order, cycle := sortByReads(trees)
	if cycle != nil {
		return nil, []ComputedProblem{{cycle[0], Problem{Line: 1, Column: 1,
			Message: "computed fields read each other: " + strings.Join(append(cycle, cycle[0]), " → ")}}}
	}
	for _, name := range order {
		field, found := trees[name].compile(known)
		for _, p := range found {
			problems = append(problems, ComputedProblem{name, p})
		}
		if field != nil {
			field.name, field.expression = name, expressions[name]
			known.Types[name] = field.kind // for those that read it
			c.fields = append(c.fields, *field)
		}
	}
	if len(problems) > 0 {
		return nil, problems
	}
	return c, nil
}

// sortByReads returns names in an order in which each comes after those that it reads, or a cycle.
func sortByReads(trees map[string]*unchecked) (order, cycle []string) {
	const visiting, done = 1, 2
	state := map[string]int{}
	var path []string
	var visit func(name string) bool
	visit = func(name string) bool {
		if state[name] == visiting {
			cycle = slices.Clone(path[slices.Index(path, name):])
			return false
		}
		if state[name] == done {
			return true
		}
		state[name], path = visiting, append(path, name)
		for _, read := range trees[name].reads {
			if trees[read] != nil && !visit(read) {
				return false
			}
		}
		state[name], path = done, path[:len(path)-1]
		order = append(order, name)
		return true
	}
	for _, name := range slices.Sorted(maps.Keys(trees)) {
		if !visit(name) {
			return nil, cycle
		}
	}
	return order, nil
}

// Names returns the computed fields, each after those that it reads.
func (c *Computed) Names() []string {
	if c == nil {
		return nil
	}
	names := make([]string, len(c.fields))
	for i, f := range c.fields {
		names[i] = f.name
	}
	return names
}

// Has reports whether a field is computed.
func (c *Computed) Has(name string) bool { return c.field(name) != nil }

func (c *Computed) field(name string) *computed {
	if c == nil {
		return nil
	}
	for i := range c.fields {
		if c.fields[i].name == name {
			return &c.fields[i]
		}
	}
	return nil
}

// Reads returns the fields that a computed field depends on, those of the computed fields that it reads included.
func (c *Computed) Reads(name string) []string {
	all := map[string]bool{}
	var add func(name string)
	add = func(name string) {
		f := c.field(name)
		if f == nil {
			return
		}
		for _, read := range f.reads {
			if !all[read] {
				all[read] = true
				add(read)
			}
		}
	}
	add(name)
	return slices.Sorted(maps.Keys(all))
}

// Type is the type of a computed field as in a JSON Schema; "": any.
func (c *Computed) Type(name string) string {
	if f := c.field(name); f != nil {
		return f.kind
	}
	return ""
}

// Definition has the expressions, and what values depend on besides: the types of fields as which they are read, and
// the arrays that are empty where they are absent. It can be encoded as JSON.
func (c *Computed) Definition() []string {
	var all []string
	for _, name := range c.Names() {
		all = append(all, name+" = "+c.field(name).expression)
		for _, read := range c.Reads(name) {
			kind := c.known.Types[read]
			if slices.Contains(c.known.Arrays, read) {
				kind = "maintained array"
			}
			all = append(all, read+": "+kind)
		}
	}
	return all
}

// Set sets the computed fields of an object. A field whose expression can't be evaluated (a field is missing, a type
// does not fit, a limit is exceeded) is absent. exceeded are the errors of those that exceed a limit.
func (c *Computed) Set(o object.Object) (exceeded []error) {
	if c == nil {
		return nil
	}
	values := &computedVariables{types: c.known.Types, object: record{object: o.Clone()}}
	in := values.object.object
	for _, f := range c.fields {
		delete(in, f.name)
		delete(o, f.name)
	}
	for _, array := range c.known.Arrays {
		if in[array] == nil {
			in[array] = []byte("[]")
		}
	}
	for _, f := range c.fields {
		value, err := f.evaluate(values)
		if err != nil {
			exceeded = append(exceeded, err)
		}
		if value != nil {
			o[f.name], in[f.name] = value, value
		}
	}
	return exceeded
}

// evaluate returns a value as JSON, nil for none. The error is about a limit.
func (f *computed) evaluate(values *computedVariables) ([]byte, error) {
	// No context ends the evaluation: its result must not depend on one.
	out, _, err := f.program.Eval(values)
	if canceled := (interpreter.EvalCancelledError{}); errors.As(err, &canceled) {
		return nil, fmt.Errorf("the expression of %s costs too much on this object", f.name)
	}
	var value []byte
	if err == nil && out != types.NullValue {
		value, err = appendJSON(nil, out)
	}
	if len(value) > MaxComputedBytes || errors.Is(err, errTooLarge) {
		return nil, fmt.Errorf("the value of %s %w", f.name, errTooLarge)
	}
	if err != nil || object.CheckCopied(value) != nil {
		return nil, nil //nolint:nilerr // a field that can't be evaluated, or stored, has no value
	}
	return value, nil
}

// computedVariables are the fields of one object, for one evaluation after the other.
type computedVariables struct {
	types  map[string]string
	object record
}

// ResolveName implements cel.Activation.
func (v *computedVariables) ResolveName(name string) (any, bool) {
	if name == wholeObject {
		return &v.object, true
	}
	value, ok := v.object.Find(types.String(name))
	if !ok {
		return nil, false
	}
	if n, isInt := value.(types.Int); isInt && v.types[name] == "number" {
		return types.Double(n), true // 3 is as much a number as 2.5
	}
	return value, true
}

// Parent implements cel.Activation.
func (*computedVariables) Parent() cel.Activation { return nil }
