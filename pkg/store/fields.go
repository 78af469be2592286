package store

import (
	"bytes"
	"fmt"
	"strings"

	"belfry/pkg/store/object"
	"belfry/pkg/store/policy"
)

// Fields that the server sets in every object.
const (
	created = "created"
	updated = "updated"
)

// hidden reports whether a field never leaves the server.
func (s *Store) hidden(name string) bool {
	return strings.HasPrefix(name, "_") || s.private[name]
}

// input is what a caller's object may set, uuid aside: for a client without
// the fields the server owns; for the program without arrays, records of
// binaries and times.
// Giving one is not an error: what was read can be written back as it is.
func (s *Store) input(call Call, o object.Object) object.Object {
	in := make(object.Object, len(o)+3)
	for name, value := range o {
		if name == "uuid" || name == created || name == updated || s.arrays[name] || s.binary[name] {
			continue
		}
		if call.Client && (s.hidden(name) || s.readOnly[name] && !call.Trusted) {
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
		hides = s.hidden(name)
		return !hides
	})
	if !hides {
		return body
	}
	out := append(make([]byte, 0, len(body)), '{')
	_ = object.Each(body, func(name string, value []byte) bool {
		if s.hidden(name) {
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

// mayHide reports whether a body holds the beginning of a hidden field's name
// anywhere. Few do, and the others need no closer look.
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

// kept reports whether the store itself keeps a field: an array, a time, an
// internal field. Callers and schemas are answerable for all others.
func (s *Store) ownedByStore(name string) bool {
	return name == created || name == updated || s.arrays[name] || strings.HasPrefix(name, "_")
}

// written returns the object without the fields that the store keeps.
func (s *Store) withoutOwned(o object.Object) object.Object {
	w := make(object.Object, len(o))
	for name, value := range o {
		if !s.ownedByStore(name) {
			w[name] = value
		}
	}
	return w
}

// size is how many bytes written(o) takes as JSON.
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

// Amendable returns what of an object an interceptor may set.
func (s *Store) SettableByInterceptor(o object.Object) object.Object {
	return s.input(Call{Client: true, Trusted: true}, o)
}

// Settable returns what of an object a client may set who is not logged in.
func (s *Store) SettableByAnonymous(o object.Object) object.Object {
	in := s.input(Call{Client: true}, o)
	if s.Policy != nil {
		s.Policy.SetOwner(policy.Create, nil, in)
	}
	return in
}
