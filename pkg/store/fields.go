package store

import (
	"bytes"
	"fmt"
	"strings"

	"belfry/pkg/store/object"
)

// Fields that the server sets in every object.
const (
	created = "created"
	updated = "updated"
)

// Hidden reports whether a field never leaves the server: private and internal
// fields.
func (s *Store) Hidden(name string) bool {
	return strings.HasPrefix(name, "_") || s.private[name]
}

// ServerOwned reports whether only the server and trusted clients set a field.
// Properties that hold binaries are not among them: clients attach to those.
func (s *Store) ServerOwned(name string) bool {
	return name == "uuid" || s.ownedByStore(name) || s.private[name] || s.readOnly[name]
}

// settable returns a copy of the caller's object with the fields that the caller
// may set, the uuid excluded. A client may not set what the server owns; the
// program itself may not set arrays, records of binaries and times. Sending such
// a field is not an error: what was read can be written back unchanged.
func (s *Store) settable(call Call, o object.Object) object.Object {
	in := make(object.Object, len(o)+3)
	for name, value := range o {
		if name == "uuid" || name == created || name == updated || s.arrays[name] || s.binary[name] {
			continue
		}
		if call.Client && (s.Hidden(name) || s.readOnly[name] && !call.Trusted) {
			continue
		}
		in[name] = value
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
	out := append(make([]byte, 0, len(body)), '{')
	_ = object.Each(body, func(name string, value []byte) bool {
		if s.Hidden(name) {
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
	for name := range s.private {
		if bytes.Contains(body, object.AppendString(nil, name)) {
			return true
		}
	}
	return false
}

// ownedByStore reports whether the store itself maintains a field: an array, a
// time, an internal field. Callers and schemas are responsible for all others.
func (s *Store) ownedByStore(name string) bool {
	return name == created || name == updated || s.arrays[name] || strings.HasPrefix(name, "_")
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

// SettableByAnonymous returns the fields of an object that a client who is not
// logged in may set.
func (s *Store) SettableByAnonymous(o object.Object) object.Object {
	return s.settable(Call{Client: true}, o)
}
