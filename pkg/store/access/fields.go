package access

import (
	"context"
	"errors"
	"strings"

	"belfry/pkg/errs"
	"belfry/pkg/object"
	"belfry/pkg/store/policy"
)

// Fields that the server sets in every object.
const (
	Created = "created"
	Updated = "updated"
)

// BinariesField is the internal field that says which properties of an object
// hold records of binaries, and of which service: {"<property>": "<service>"}.
const BinariesField = "_binaries"

// Binaries returns the properties of an object that hold records of binaries,
// each with the service whose binaries they are.
func Binaries(o object.Object) map[string]string { return BinariesIn(o[BinariesField]) }

// BinariesIn is Binaries of the value of BinariesField.
func BinariesIn(value []byte) map[string]string {
	if value == nil {
		return nil
	}
	services := map[string]string{}
	_ = object.Each(value, func(property string, service []byte) bool {
		services[property], _ = object.Text(service)
		return true
	})
	return services
}

// WithoutBinaries returns the input without the properties that hold records of
// binaries in the stored object. It does not modify the input.
func WithoutBinaries(input, stored object.Object) object.Object {
	properties := Binaries(stored)
	if len(properties) == 0 {
		return input
	}
	rest := input.Clone()
	for name := range properties {
		delete(rest, name)
	}
	return rest
}

// IsInternal reports whether a field is internal: only belfry sets and sees it.
func IsInternal(name string) bool { return strings.HasPrefix(name, "_") }

// Hidden reports whether a field never leaves the server: private and internal
// fields.
func (r *Rules) Hidden(name string) bool { return IsInternal(name) || r.fields.Never(name) }

// IsArray reports whether a field is an array that mappings maintain.
func (r *Rules) IsArray(name string) bool { return r.arrays[name] }

// ServerOwned reports whether only the server and trusted clients set a field.
// Properties that hold binaries are not among them: clients attach to those.
func (r *Rules) ServerOwned(name string) bool {
	return name == "uuid" || r.OwnedByStore(name) || r.fields.Never(name) || r.fields.Ignores(name, false)
}

// OwnedByStore reports whether belfry itself maintains a field: an array, a copy, an aggregate, a
// time, a computed, internal or reserved field. Callers and schemas are responsible for all others.
func (r *Rules) OwnedByStore(name string) bool {
	return name == Created || name == Updated || r.arrays[name] || r.derived[name] || r.reserved[name] ||
		r.opts.Computed.Has(name) || IsInternal(name)
}

// Maintains reports whether belfry itself maintains a field other than the uuid, in every object.
func (r *Rules) Maintains(name string) bool {
	return r.OwnedByStore(name) || r.binaries[name] || r.maintained[name] || r.owner != "" && name == r.owner
}

// Settable returns a copy of the caller's object with the fields that the caller may set, the uuid excluded. A client
// may not set the server's fields; the program itself may not set arrays, copies, aggregates, computed fields, records
// of binaries and times. Sending such a field is not an error: clients can write back an object as they read it.
// Strings are as they will be stored, so that limits count that.
func (r *Rules) Settable(c Caller, o object.Object) object.Object {
	in := make(object.Object, len(o)+3)
	for name, value := range o {
		if name == "uuid" || name == Created || name == Updated ||
			r.arrays[name] || r.derived[name] || r.binaries[name] || r.opts.Computed.Has(name) {
			continue
		}
		if c.Client && (IsInternal(name) || r.reserved[name] || r.fields.Ignores(name, c.Trusted)) {
			continue
		}
		in[name] = object.Canonical(value)
	}
	return in
}

// SettableByInterceptor returns the fields of an object that an interceptor may
// set.
func (r *Rules) SettableByInterceptor(o object.Object) object.Object {
	return r.Settable(Caller{Client: true, Trusted: true}, o)
}

// SettableByAnonymous returns the fields of a new object that a client that is not
// logged in may set. Denied when the write rule of one of them does not hold.
func (r *Rules) SettableByAnonymous(
	ctx context.Context, budget *policy.Budget, o object.Object,
) (object.Object, error) {
	c := Caller{Client: true, Budget: budget}
	given := r.Settable(c, o)
	after := &policy.After{Object: func(context.Context) (object.Object, error) { return given, nil }}
	err := r.AllowFields(ctx, c, policy.Create, nil, given, given, after)
	if e := (*errs.Error)(nil); errors.Is(err, errs.Unauthenticated) && errors.As(err, &e) {
		err = errs.Wrap(e.Err, errs.Denied, "%s", e.Message) // they register: logging in is not the way
	}
	return given, err
}

// WithoutOwned returns the object without the fields that belfry maintains: see OwnedByStore.
func (r *Rules) WithoutOwned(o object.Object) object.Object {
	w := make(object.Object, len(o))
	for name, value := range o {
		if !r.OwnedByStore(name) {
			w[name] = value
		}
	}
	return w
}
