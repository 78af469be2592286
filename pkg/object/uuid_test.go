package object_test

import (
	"errors"
	"net/url"
	"path"
	"regexp"
	"strings"
	"testing"

	"belfry/pkg/errs"
	"belfry/pkg/object"
)

func TestValidUUID(t *testing.T) {
	for _, s := range []string{"a", "0", "_", "-", "@", "+", "a.b", "a..b", "A-Z_a@z+0.9",
		"0199f3a2-7c1e-7b52-9d0e-3f6a1b2c4d5e", "me@example.com_email", strings.Repeat("x", object.MaxUUID)} {
		if !object.ValidUUID(s) || object.CheckUUID(s) != nil {
			t.Errorf("%q is refused", s)
		}
	}
	for _, s := range []string{"", ".", "..", ".a", "../a", "a/b", `a\b`, "a b", "a\x00", "a\n", "é", "a%2E", "a*",
		"a>", "a:b", "a\xff", strings.Repeat("x", object.MaxUUID+1)} {
		if object.ValidUUID(s) || !errors.Is(object.CheckUUID(s), errs.Invalid) {
			t.Errorf("%q is accepted", s)
		}
	}
}

func TestNewUUIDsAreValidAndInOrder(t *testing.T) {
	last := ""
	for range 1000 {
		id := object.NewUUID()
		if !object.ValidUUID(id) {
			t.Fatalf("%q is not valid", id)
		}
		if id <= last {
			t.Fatalf("%q does not come after %q", id, last)
		}
		last = id
	}
}

// FuzzUUID: what is accepted is what the rule says, and safe as one element of
// a path and of a URL.
func FuzzUUID(f *testing.F) {
	for _, s := range []string{"", "a", ".a", "a.b", "..", "a/b", "%2e", "a\x00",
		"0199f3a2-7c1e-7b52-9d0e-3f6a1b2c4d5e", "é"} {
		f.Add(s)
	}
	rule := regexp.MustCompile(`\A[A-Za-z0-9_@+-][A-Za-z0-9._@+-]{0,199}\z`)
	f.Fuzz(func(t *testing.T, s string) {
		ok := object.ValidUUID(s)
		if ok != rule.MatchString(s) {
			t.Fatalf("ValidUUID(%q) = %v", s, ok)
		}
		if ok != (object.CheckUUID(s) == nil) {
			t.Fatalf("CheckUUID(%q) disagrees", s)
		}
		if !ok {
			return
		}
		if path.Join("/data", s) != "/data/"+s {
			t.Fatalf("%q changes a path", s)
		}
		if u, err := url.Parse("/books/" + s); err != nil || u.Path != "/books/"+s {
			t.Fatalf("%q changes a URL: %v", s, err)
		}
	})
}
