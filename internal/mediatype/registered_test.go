package mediatype

import "testing"

// A registered name is no other's alias.
func TestRegisteredNamesAreRegistered(t *testing.T) {
	for name, of := range registered {
		if Registered(of) != of || name == of || Registered(name) != of {
			t.Errorf("%q is %q, which is %q", name, of, Registered(of))
		}
	}
}
