package object_test

import (
	"strings"
	"testing"

	"belfry/pkg/object"
)

func TestValidProperty(t *testing.T) {
	for _, name := range []string{"a", "0", "a_b", "a-b", "é", "名前", "Ⅷ", strings.Repeat("é", object.MaxProperty)} {
		if !object.ValidProperty(name) {
			t.Errorf("%q is refused", name)
		}
	}
	for _, name := range []string{"", "_a", "-a", "a b", "a.b", "a/b", "a\n", "a\xff", "\xff",
		strings.Repeat("é", object.MaxProperty+1)} {
		if object.ValidProperty(name) {
			t.Errorf("%q is accepted", name)
		}
	}
}
