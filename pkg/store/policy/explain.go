package policy

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"cel.dev/cel-go/common/ast"

	"belfry/pkg/object"
)

// Decision explains the decision of the rule of an operation.
type Decision struct {
	Allowed   bool   `json:"allowed"`
	Operation Op     `json:"operation"`         // whose rule it is: a list may have that of get
	Rule      string `json:"rule"`              // its expression, or a text in its place
	Reason    string `json:"reason,omitempty"`  // why it could not be evaluated
	IsOwner   *bool  `json:"isOwner,omitempty"` // if the rule asks
	Values    []Read `json:"values,omitempty"`  // that the rule names
	Parts     []Part `json:"parts,omitempty"`   // of an expression with several
}

// Read is a field that an expression names.
type Read struct {
	Variable string `json:"variable"` // user, session, object, input, or linked. and a reference
	Field    string `json:"field"`
	JSON     string `json:"json,omitempty"`    // its value; "" for none
	Private  bool   `json:"private,omitempty"` // the value is left out
}

// Texts in place of an expression in a Decision and a FieldDecision.
const (
	noRule     = "none: everyone may"
	ownersRule = "policy: owner"
	neverRead  = `read: "false"`
)

// FieldDecision explains the decision about reading a field, or about writing it.
type FieldDecision struct {
	Allowed bool   `json:"allowed"`
	Rule    string `json:"rule"`             // its expression, or a text in its place
	Reason  string `json:"reason,omitempty"` // why it could not be evaluated
}

// ExplainRead explains the decision of a FieldReader about a field of in.Object. Errors: as of ctx.
func (f *Fields) ExplainRead(ctx context.Context, name string, in Input) (FieldDecision, error) {
	switch of := f.all[name]; {
	case of.never && of.ignored:
		return FieldDecision{Rule: "private"}, nil
	case of.never:
		return FieldDecision{Rule: neverRead}, nil
	default:
		return f.explain(ctx, of.read, Get, in)
	}
}

// ExplainWrite explains the decision of AllowWrite about a field. Errors: as of ctx.
func (f *Fields) ExplainWrite(ctx context.Context, op Op, name string, in Input) (FieldDecision, error) {
	return f.explain(ctx, f.all[name].write, op, in)
}

func (f *Fields) explain(ctx context.Context, r *rule, op Op, in Input) (FieldDecision, error) {
	if r == nil {
		return FieldDecision{Allowed: true, Rule: noRule}, nil
	}
	denial, err := f.rules.evaluate(ctx, r, op, in)
	d := FieldDecision{Allowed: denial == nil && err == nil, Rule: r.expression}
	if denial != nil {
		d.Reason = denial.Reason
	}
	return d, err
}

// Explain decides as Allow does, and says why. Policy may be nil: there are no rules. Errors: as of ctx.
func (p *Policy) Explain(ctx context.Context, op Op, in Input) (Decision, error) {
	if p == nil || p.Open(op) {
		return Decision{Allowed: true, Operation: op, Rule: noRule}, nil
	}
	d := Decision{Operation: p.ruleOp(op), Rule: ownersRule}
	err := p.Allow(ctx, op, in)
	var denial *Denial
	if errors.As(err, &denial) {
		d.Reason, err = denial.Reason, nil
	} else {
		d.Allowed = err == nil
	}
	r := p.ruleFor(op)
	if r == nil || r.isOwner {
		is := p.isOwner(op, in)
		d.IsOwner = &is
		d.Values = append(d.Values, readOf(in.User, "user", "uuid"))
		if op != Create {
			d.Values = append(d.Values, readOf(in.Object, "object", p.owner))
		}
	}
	switch {
	case r != nil:
		d.Rule = r.expression
		parts, failed := p.partsOf(ctx, r, op, in)
		if d.Parts = parts; err == nil {
			err = failed
		}
		d.Values = append(d.Values, r.reads(in)...)
		linked, failed := r.readsLinked(ctx, op, in)
		if d.Values = append(d.Values, linked...); err == nil {
			err = failed
		}
	case op == Get || op == List:
		d.Values = append(d.Values, readOf(in.Object, "object", "public"))
	}
	slices.SortFunc(d.Values,
		func(a, b Read) int { return cmp.Or(cmp.Compare(a.Variable, b.Variable), cmp.Compare(a.Field, b.Field)) })
	d.Values = slices.Compact(d.Values)
	return d, err
}

// reads returns the fields that an expression selects from objects.
func (r *rule) reads(in Input) []Read {
	env, err := environment()
	if err != nil {
		return nil
	}
	tree, problems := parse(env, "", r.expression)
	if len(problems) > 0 {
		return nil // it has been compiled before
	}
	var all []Read
	objects := map[string]object.Object{"user": in.User, "object": in.Object, "input": in.Input,
		sessionVariable: in.Session.record()}
	for _, e := range ast.MatchDescendants(ast.NavigateAST(tree.NativeRep()), ast.KindMatcher(ast.SelectKind)) {
		variable := e.AsSelect().Operand().AsIdent() // "" for any other expression
		if o, known := objects[variable]; known {
			all = append(all, readOf(o, variable, e.AsSelect().FieldName()))
		}
	}
	return all
}

// Hide leaves out the values of fields of some variables that are private, and of parts that read them.
func (d *Decision) Hide(private func(field string) bool, variables ...string) {
	for i, v := range d.Values {
		if slices.Contains(variables, v.Variable) && private(v.Field) {
			d.Values[i].JSON, d.Values[i].Private = "", true
		}
	}
	for i := range d.Parts {
		if slices.ContainsFunc(d.Parts[i].reads,
			func(f NamedField) bool { return slices.Contains(variables, f.Variable) && private(f.Field) }) {
			d.Parts[i].Value, d.Parts[i].Private = "", true
		}
	}
}

func readOf(o object.Object, variable, field string) Read {
	return Read{Variable: variable, Field: field, JSON: string(o[field])}
}
