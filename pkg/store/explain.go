package store

import (
	"context"

	"belfry/pkg/store/object"
	"belfry/pkg/store/policy"
)

// Explain explains what the policy decides about an operation of the caller on an object; input is what a
// creation or an update would send. Values of private fields are left out. Errors: NotFound.
func (s *Store) Explain(ctx context.Context, op policy.Op, uuid string, input object.Object) (policy.Decision, error) {
	call := CallOf(ctx)
	in := policy.Input{User: call.User, Now: s.opts.Now()}
	if op == policy.Create {
		in.Input = s.settable(call, input)
		s.setOwner(call, in.Input)
	} else {
		record, err := s.read(ctx, uuid)
		if err != nil {
			return policy.Decision{}, err
		}
		if in.Object, err = object.Decode(record.Body); err != nil {
			return policy.Decision{}, err
		}
	}
	if op == policy.Update {
		in.Input = withoutBinaries(s.settable(call, input), in.Object)
	}
	d, err := s.opts.Policy.Explain(ctx, op, in)
	d.Hide(s.Hidden, "object", "input")
	return d, err
}
