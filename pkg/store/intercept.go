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
	Stored []byte   // as it is stored; nil when there is none
	Datas  []byte   // for register: the form, or the provider's profile
	Arrays []string // the store's mapped arrays, which can be left out where they are too large
	Call   Call
}

// Interceptor is called before an operation of a client is executed.
type Interceptor interface {
	// Intercept returns an error to reject, and otherwise a merge patch
	// (RFC 7396) for the object, nil for none.
	Intercept(ctx context.Context, r InterceptRequest) (patch object.Object, err error)
}

// intercept calls the interceptor for an operation of a client, and returns the
// object with the interceptor's patch, which can set what a trusted client can.
func (s *Store) intercept(ctx context.Context, call Call, op, uuid string, next object.Object, stored []byte) (object.Object, error) {
	if !s.intercepts(call) {
		return next, nil
	}
	r := InterceptRequest{Op: op, Store: s.opts.Name, UUID: uuid, Arrays: s.opts.Arrays, Call: call}
	if next != nil {
		r.Object = s.rules.Visible(next.Encode())
	}
	if stored != nil {
		r.Stored = s.rules.Visible(stored)
	}
	patch, err := s.opts.Interceptor.Intercept(ctx, r)
	if err != nil || len(patch) == 0 || next == nil {
		return next, err
	}
	allowed := s.rules.SettableByInterceptor(patch)
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
	return amended, s.validate(ctx, before, amended)
}

// intercepts reports whether an interceptor is asked about operations of a call.
func (s *Store) intercepts(call Call) bool { return s.opts.Interceptor != nil && call.Client }

// interceptGet calls the interceptor for an object that a client reads, and
// returns the object with the interceptor's patch.
func (s *Store) interceptGet(ctx context.Context, call Call, o Stored) (Stored, error) {
	if !s.intercepts(call) {
		return o, nil
	}
	patch, err := s.opts.Interceptor.Intercept(ctx, InterceptRequest{Op: "get", Store: s.opts.Name, UUID: o.UUID, Object: o.Body, Arrays: s.opts.Arrays, Call: call})
	if err != nil || len(patch) == 0 {
		return o, err
	}
	amended, err := o.Object()
	if err != nil {
		return o, err
	}
	if amended, err = object.MergePatch(amended, s.rules.SettableByInterceptor(patch)); err != nil {
		return o, err
	}
	o.Body = s.rules.Visible(amended.Encode())
	return o, nil
}
