package access

import (
	"context"
	"maps"
	"slices"

	"belfry/pkg/object"
	"belfry/pkg/store/policy"
)

// Explanation explains the decision of the rules about an operation.
type Explanation struct {
	policy.Decision
	Fields []FieldAccess `json:"fields,omitempty"` // sorted; none if the operation is denied, and for a deletion
}

// Granted reports whether the caller may do the operation with the input.
func (e *Explanation) Granted() bool {
	return e.Allowed && !slices.ContainsFunc(e.Fields, FieldAccess.Refused)
}

// FieldAccess explains which rules decide about one field of an object.
type FieldAccess struct {
	Field string `json:"field"`

	// Read is nil if the operation shows no object, or the object has no such field.
	Read  *policy.FieldDecision `json:"read,omitempty"`
	Write *policy.FieldDecision `json:"write,omitempty"`

	Given   bool `json:"given,omitempty"`   // the input has it
	Ignored bool `json:"ignored,omitempty"` // values from clients are ignored, not refused
}

// Refused reports whether the operation is refused because the input has the field.
func (f FieldAccess) Refused() bool {
	return f.Given && f.Write != nil && !f.Write.Allowed && !f.Ignored
}

// Explain explains the decision of the rules about an operation of the caller on a stored object, nil for a creation;
// input is the input of a creation or an update, and after returns what that makes. Values of private fields of the
// store are left out.
func (r *Rules) Explain(
	ctx context.Context, c Caller, op policy.Op, stored, input object.Object,
	after func(next object.Object) *policy.After,
) (Explanation, error) {
	in := r.Input(Caller{User: c.User, Session: c.Session}, stored, nil)
	switch op {
	case policy.Create:
		in.Input = r.Settable(c, input)
		r.SetOwner(c, in.Input)
		in.After = after(in.Input)
	case policy.Update:
		in.Input = WithoutBinaries(r.Settable(c, input), stored)
		in.After = after(stored.Merge(in.Input))
	}
	d, err := r.opts.Policy.Explain(ctx, op, in)
	if err != nil {
		return Explanation{}, err
	}
	d.Hide(r.Hidden, "object", "input")
	e := Explanation{Decision: d}
	if d.Allowed && op != policy.Delete {
		e.Fields, err = r.explainFields(ctx, c, op, in, input)
	}
	return e, err
}

// explainFields explains the rules of the fields that the object or the input has, and of those that have a write rule.
// sent is the input, including ignored fields.
func (r *Rules) explainFields(
	ctx context.Context, c Caller, op policy.Op, in policy.Input, sent object.Object,
) ([]FieldAccess, error) {
	reads, writes := op != policy.Create, op == policy.Create || op == policy.Update
	names := map[string]bool{}
	for name := range in.Object {
		names[name] = true
	}
	if writes {
		for _, name := range slices.Concat(sent.Names(), in.Input.Names(), r.fields.Writers()) {
			names[name] = true
		}
	}
	var gets policy.FieldDecision
	if reads {
		d, err := r.opts.Policy.Explain(ctx, readOp(op), in)
		if err != nil {
			return nil, err
		}
		rule := "the rule of " + string(d.Operation) + ": " + d.Rule
		if gets = (policy.FieldDecision{Allowed: d.Allowed, Rule: rule, Reason: d.Reason}); c.NoGet {
			gets = policy.FieldDecision{Rule: "expose.restrict.get"}
		}
	}
	var all []FieldAccess
	for _, name := range slices.Sorted(maps.Keys(names)) {
		f := FieldAccess{Field: name, Given: sent[name] != nil}
		if reads && in.Object[name] != nil {
			d, err := r.explainRead(ctx, name, gets, in)
			if err != nil {
				return nil, err
			}
			f.Read = &d
		}
		if writes {
			if err := r.explainWrite(ctx, c, op, &f, in); err != nil {
				return nil, err
			}
		}
		all = append(all, f)
	}
	return all, nil
}

// readOp is the operation whose view a caller gets: a write replies with the view of a get.
func readOp(op policy.Op) policy.Op {
	if op == policy.List {
		return op
	}
	return policy.Get
}

func (r *Rules) explainRead(
	ctx context.Context, name string, gets policy.FieldDecision, in policy.Input,
) (policy.FieldDecision, error) {
	switch {
	case IsInternal(name):
		return policy.FieldDecision{Rule: "kept by the server"}, nil
	case !gets.Allowed && !r.fields.Never(name):
		return gets, nil
	default:
		return r.fields.ExplainRead(ctx, name, in)
	}
}

// explainWrite sets the decision about writing a field. For an input with the field, it is the decision of allowFields.
func (r *Rules) explainWrite(ctx context.Context, c Caller, op policy.Op, f *FieldAccess, in policy.Input) error {
	if op == policy.Create && f.Field == "uuid" {
		f.Write = &policy.FieldDecision{Allowed: true, Rule: "uuid: client"}
		if !r.ClientsChooseUUIDs() {
			f.Write = &policy.FieldDecision{Rule: "uuid: server"}
		}
		return nil
	}
	if why := r.whyIgnored(c, f.Field, in.Object); why != "" {
		f.Write, f.Ignored = &policy.FieldDecision{Rule: why}, true
		return nil
	}
	if op == policy.Update && f.Given && object.SameValue(in.Object[f.Field], in.Input[f.Field]) {
		may, err := r.mayReadStored(ctx, c, f.Field, in.Object)
		if err != nil {
			return err
		}
		if may {
			f.Write = &policy.FieldDecision{Allowed: true, Rule: "none: the value stays as it is"}
			return nil
		}
	}
	d, err := r.fields.ExplainWrite(ctx, op, f.Field, in)
	f.Write = &d
	return err
}

// whyIgnored says why the caller's value of a field of an object is ignored; "" if it is not.
func (r *Rules) whyIgnored(c Caller, name string, stored object.Object) string {
	_, holdsFiles := Binaries(stored)[name]
	switch {
	case r.opts.Computed.Has(name):
		return "computed"
	case name == "uuid" || r.OwnedByStore(name):
		return "kept by the server"
	case r.binaries[name] || holdsFiles:
		return "holds files, which are uploaded and deleted"
	case name == r.owner:
		return "names the owner"
	case r.fields.Ignores(name, c.Trusted) && r.fields.Never(name):
		return "private"
	case r.fields.Ignores(name, c.Trusted):
		return "readOnly"
	default:
		return ""
	}
}
