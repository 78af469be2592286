package access

import (
	"bytes"
	"context"
	"errors"

	"belfry/pkg/object"
	"belfry/pkg/store/policy"
)

// AllowFields evaluates the write rules of the fields that the input of a client changes. stored is nil for a new
// object; next is the resulting object, nil if each given field changes.
//
// An unchanged value is no change, but only for a client who may read the field: others would learn its value by
// trying. If the rule does not hold, next keeps the stored text, even if the client has written an equal value
// differently: the text of a number decides whether a key names an object.
func (r *Rules) AllowFields(
	ctx context.Context, c Caller, op policy.Op, stored, input, next object.Object, after *policy.After,
) error {
	if !c.isRestricted() {
		return nil
	}
	in := r.Input(c, stored, input)
	in.After = after
	for _, name := range r.fields.Writers() {
		if _, given := input[name]; !given {
			continue
		}
		var keeps bool
		var err error
		if stored != nil && next != nil && object.SameValue(stored[name], next[name]) {
			if keeps, err = r.mayReadStored(ctx, c, name, stored); err != nil {
				return err
			}
		}
		if keeps && bytes.Equal(stored[name], next[name]) {
			continue
		}
		err = r.allowField(ctx, op, name, in)
		if keeps && IsForbidden(err) {
			next[name] = stored[name]
			continue
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// AllowMutation evaluates the write rules of the fields that a client has the server change.
func (r *Rules) AllowMutation(
	ctx context.Context, c Caller, stored []byte, input object.Object, after *policy.After,
) error {
	if !c.isRestricted() || len(r.fields.Writers()) == 0 || len(input) == 0 {
		return nil
	}
	decoded, err := object.Decode(stored)
	if err != nil {
		return err
	}
	return r.AllowFields(ctx, c, policy.Update, decoded, input, nil, after)
}

// allowField evaluates the write rule of a field.
func (r *Rules) allowField(ctx context.Context, op policy.Op, name string, in policy.Input) error {
	err := r.fields.AllowWrite(ctx, op, name, in)
	if failed := (*policy.Denial)(nil); errors.As(err, &failed) && failed.Reason != "" {
		r.opts.Logger.DebugContext(ctx, "a write rule of a field could not be evaluated, so the write is denied",
			"store", r.opts.Store, "error", failed)
	}
	return err
}
