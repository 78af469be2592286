package store

import (
	"context"

	"belfry/pkg/object"
	"belfry/pkg/store/access"
)

// InterceptRequest describes an operation of a client to an interceptor. Objects
// are without the fields that never leave the server.
type InterceptRequest struct {
	Op     string // save, update, delete, get or register
	Store  string
	UUID   string
	Object []byte   // as it would be stored, for get as it would be returned; nil for a deletion
	Stored []byte   // as it is stored; nil for a new one
	Datas  []byte   // for register: the form, or the provider's profile
	Arrays []string // the store's mapped arrays, which can be left out if they are too large
	Call   Call
}

// Interceptor is called before an operation of a client is executed.
type Interceptor interface {
	// Intercept returns an error to reject, and otherwise a merge patch
	// (RFC 7396) for the object, nil for none.
	Intercept(ctx context.Context, r InterceptRequest) (patch object.Object, err error)
}

// interception asks the interceptor of a store.
type interception struct {
	store       string
	arrays      []string
	interceptor Interceptor // nil: none
	rules       *access.Rules
	checks      *checks // of what it has amended
}

// applies reports whether the interceptor is asked about operations of a call.
func (i *interception) applies(call Call) bool { return i.interceptor != nil && call.Client }

// write asks about an operation of a client, and returns the
// object with the interceptor's patch, which can set the fields that a trusted client can.
func (i *interception) write(
	ctx context.Context, call Call, op, uuid string, next object.Object, stored []byte,
) (object.Object, error) {
	if !i.applies(call) {
		return next, nil
	}
	r := InterceptRequest{Op: op, Store: i.store, UUID: uuid, Arrays: i.arrays, Call: call}
	if next != nil {
		r.Object = i.rules.Visible(next.Encode())
	}
	if stored != nil {
		r.Stored = i.rules.Visible(stored)
	}
	patch, err := i.interceptor.Intercept(ctx, r)
	if err != nil || len(patch) == 0 || next == nil {
		return next, err
	}
	allowed := i.rules.SettableByInterceptor(patch)
	for name := range access.Binaries(next) {
		delete(allowed, name)
	}
	amended, err := object.MergePatch(next, allowed)
	if err != nil {
		return nil, err
	}
	var before object.Object
	if stored != nil {
		if before, err = object.Decode(stored); err != nil {
			return nil, err
		}
	}
	return amended, i.checks.check(ctx, before, amended)
}

// read asks about an object that a client reads, and
// returns the object with the interceptor's patch.
func (i *interception) read(ctx context.Context, call Call, o Stored) (Stored, error) {
	if !i.applies(call) {
		return o, nil
	}
	patch, err := i.interceptor.Intercept(ctx, InterceptRequest{
		Op: "get", Store: i.store, UUID: o.UUID, Object: o.Body, Arrays: i.arrays, Call: call,
	})
	if err != nil || len(patch) == 0 {
		return o, err
	}
	amended, err := o.Object()
	if err != nil {
		return o, err
	}
	if amended, err = object.MergePatch(amended, i.rules.SettableByInterceptor(patch)); err != nil {
		return o, err
	}
	o.Body = i.rules.Visible(amended.Encode())
	return o, nil
}
