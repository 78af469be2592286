package store

import (
	"context"

	"belfry/pkg/store/object"
)

// Question is what an interceptor is asked about. Objects are without what
// never leaves the server.
type InterceptRequest struct {
	Op     string // save, update, delete, get or register
	Store  string
	UUID   string
	Object []byte // as it would be stored; of get as it would be told; nil for a deletion
	Stored []byte // as it is; nil when there is none
	Datas  []byte // of register: the form, or the provider's profile
	Call   Call
}

// Interceptor is asked before an act of a client takes place.
type Interceptor interface {
	// Intercept returns an error to refuse, and otherwise a merge patch (RFC 7396)
	// for the object, nil for none.
	Intercept(ctx context.Context, q InterceptRequest) (patch object.Object, err error)
}

// ask asks the interceptor about a client's act, and returns the object as the
// interceptor wants it: it can set what a trusted client could.
func (s *Store) intercept(ctx context.Context, call Call, op, uuid string, next object.Object, stored []byte) (object.Object, error) {
	if s.Interceptor == nil || !call.Client {
		return next, nil
	}
	q := InterceptRequest{Op: op, Store: s.Name, UUID: uuid, Call: call}
	if next != nil {
		q.Object = s.visible(next.Encode())
	}
	if stored != nil {
		q.Stored = s.visible(stored)
	}
	patch, err := s.Interceptor.Intercept(ctx, q)
	if err != nil || len(patch) == 0 || next == nil {
		return next, err
	}
	allowed := s.SettableByInterceptor(patch)
	for name := range Binaries(next) {
		delete(allowed, name)
	}
	amended, err := object.MergePatch(next, allowed)
	if err != nil {
		return nil, err
	}
	return amended, s.validate(ctx, amended)
}

// told asks the interceptor about an object that a client reads, and returns it
// as the interceptor wants it told.
func (s *Store) interceptGet(ctx context.Context, call Call, o Stored) (Stored, error) {
	if s.Interceptor == nil || !call.Client {
		return o, nil
	}
	patch, err := s.Interceptor.Intercept(ctx, InterceptRequest{Op: "get", Store: s.Name, UUID: o.UUID, Object: o.Body, Call: call})
	if err != nil || len(patch) == 0 {
		return o, err
	}
	whole, err := o.Object()
	if err != nil {
		return o, err
	}
	if whole, err = object.MergePatch(whole, s.SettableByInterceptor(patch)); err != nil {
		return o, err
	}
	o.Body = s.visible(whole.Encode())
	return o, nil
}
