package export

import (
	"path"
	"strings"
	"testing"

	"belfry/pkg/binary"
)

// Whatever properties and names are stored, as by another release: each file has a path of its own, below its object.
func TestPathsAreSafeWhateverIsStored(t *testing.T) {
	seen := map[string]bool{}
	for _, property := range []string{"", ".", "..", "../up", "a/b", `a\b`, "a%2Fb", "%2F", "é", "\x00", "C:",
		strings.Repeat("long", 40), strings.Repeat("long", 40) + "er"} {
		for _, name := range []string{"", "..", "../../x", `..\x`, "a\x00b", "\xff\xfe",
			strings.Repeat("é", 120) + ".jpeg", strings.Repeat("x", 300)} {
			got := nameOf(binary.Place{Store: "Notes", UUID: "a1", Property: property, Index: len(seen)}, name)
			parts := strings.Split(got, "/")
			if path.Clean(got) != got || len(parts) != 5 || !strings.HasPrefix(got, "files/Notes/a1/") ||
				strings.ContainsAny(got, "\\:\x00") || seen[got] {
				t.Errorf("%q and %q: %q", property, name, got)
			}
			seen[got] = true
			for _, part := range parts {
				if part == "" || part == "." || part == ".." || len(part) > 255 || strings.HasSuffix(part, ".") {
					t.Errorf("%q has %q", got, part)
				}
			}
		}
	}
	if a, b := safeProperty("a/b"), safeProperty("a%2Fb"); a == b {
		t.Error(a, b)
	}
}
