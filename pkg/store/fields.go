package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"belfry/pkg/errs"
	"belfry/pkg/object"
	"belfry/pkg/store/policy"
)

// Fields that the server sets in every object.
const (
	created = "created"
	updated = "updated"
)

// isInternal reports whether a field is internal: belfry alone sets and sees it.
func isInternal(name string) bool { return strings.HasPrefix(name, "_") }

// Hidden reports whether a field never leaves the server: private and internal
// fields.
func (s *Store) Hidden(name string) bool {
	return isInternal(name) || s.fields.Never(name)
}

// ServerOwned reports whether only the server and trusted clients set a field.
// Properties that hold binaries are not among them: clients attach to those.
func (s *Store) ServerOwned(name string) bool {
	return name == "uuid" || s.ownedByStore(name) || s.fields.Never(name) || s.fields.Ignores(name, false)
}

// settable returns a copy of the caller's object with the fields that the caller
// may set, the uuid excluded. A client may not set what the server owns; the
// program itself may not set arrays, computed fields, records of binaries and times. Sending such
// a field is not an error: what was read can be written back unchanged. Strings are as they will be stored, so that limits count that.
func (s *Store) settable(call Call, o object.Object) object.Object {
	in := make(object.Object, len(o)+3)
	for name, value := range o {
		if name == "uuid" || name == created || name == updated || s.arrays[name] || s.binary[name] || s.opts.Computed.Has(name) {
			continue
		}
		if call.Client && (strings.HasPrefix(name, "_") || s.reserved[name] || s.fields.Ignores(name, call.Trusted)) {
			continue
		}
		in[name] = object.Canonical(value)
	}
	return in
}

// visible returns an encoded object without its hidden fields; the same slice
// when it has none.
func (s *Store) visible(body []byte) []byte {
	if !s.mayHide(body) {
		return body
	}
	hides := false
	_ = object.Each(body, func(name string, _ []byte) bool {
		hides = s.Hidden(name)
		return !hides
	})
	if !hides {
		return body
	}
	return without(body, s.Hidden)
}

// without returns an encoded object without some of its fields.
func without(body []byte, leaveOut func(name string) bool) []byte {
	out := append(make([]byte, 0, len(body)), '{')
	_ = object.Each(body, func(name string, value []byte) bool {
		if leaveOut(name) {
			return true
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = object.AppendString(out, name)
		out = append(out, ':')
		out = append(out, value...)
		return true
	})
	return append(out, '}')
}

// mayHide reports whether a body contains the beginning of a hidden field's name
// anywhere. Most do not, and skip the scan of their fields.
func (s *Store) mayHide(body []byte) bool {
	if bytes.Contains(body, []byte(`"_`)) {
		return true
	}
	for _, name := range s.never {
		if bytes.Contains(body, name) {
			return true
		}
	}
	return false
}

// ownedByStore reports whether belfry itself maintains a field: an array, a
// time, a computed, internal or reserved field. Callers and schemas are responsible for all others.
func (s *Store) ownedByStore(name string) bool {
	return name == created || name == updated || s.arrays[name] || s.reserved[name] || s.opts.Computed.Has(name) || strings.HasPrefix(name, "_")
}

// withoutOwned returns the object without the fields that the store maintains.
func (s *Store) withoutOwned(o object.Object) object.Object {
	w := make(object.Object, len(o))
	for name, value := range o {
		if !s.ownedByStore(name) {
			w[name] = value
		}
	}
	return w
}

// size returns how many bytes withoutOwned(o) takes as JSON.
func (s *Store) size(o object.Object) int {
	size := len("{") // and each field ends with a comma or with the final brace
	for name, value := range o {
		if !s.ownedByStore(name) {
			size += len(`"":,`) + len(name) + len(value)
		}
	}
	return max(size, len("{}"))
}

func tooManyKeys(n int) string {
	return fmt.Sprintf("names %d objects; at most %d are allowed", n, MaxKeyTargets)
}

// SettableByInterceptor returns the fields of an object that an interceptor may
// set.
func (s *Store) SettableByInterceptor(o object.Object) object.Object {
	return s.settable(Call{Client: true, Trusted: true}, o)
}

// SettableByAnonymous returns the fields of a new object that a client who is not
// logged in may set. Denied when the write rule of one of them does not hold.
func (s *Store) SettableByAnonymous(ctx context.Context, o object.Object) (object.Object, error) {
	call := Call{Client: true, RuleBudget: CallOf(ctx).RuleBudget}
	given := s.settable(call, o)
	err := s.allowFields(ctx, call, policy.Create, nil, given, given)
	if e := (*errs.Error)(nil); errors.Is(err, errs.Unauthenticated) && errors.As(err, &e) {
		err = errs.Wrap(e.Err, errs.Denied, "%s", e.Message) // they register: logging in is not the way
	}
	return given, err
}
