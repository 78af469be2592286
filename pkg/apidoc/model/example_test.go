package model

import (
	"slices"
	"strconv"
	"testing"

	"belfry/internal/ordered"
	"belfry/pkg/store/schema/format"
)

// The example of each format has it, in every draft, and one with a length that it does not have is no example.
func TestExamplesHaveTheirFormats(t *testing.T) {
	for _, name := range format.Names() {
		s, ok := text(ordered.Of("type", "string", "format", name))
		if example, isText := s.(string); !ok || !isText || formatted[name] != example || !format.Of(name, true)(example) || !format.Of(name, false)(example) {
			t.Errorf("%s: %v is no example", name, s)
		}
		if s, ok := text(ordered.Of("type", "string", "format", name, "minLength", ordered.Number("100"))); ok {
			t.Errorf("%s: %v is too short", name, s)
		}
		if s, ok := text(ordered.Of("type", "string", "format", name, "maxLength", ordered.Number("2"))); ok {
			t.Errorf("%s: %v is too long", name, s)
		}
	}
	for name := range formatted {
		if !slices.Contains(format.Names(), name) {
			t.Errorf("%s is no format", name)
		}
	}
}

// Strings of other formats are text of the length that the schema wants.
func TestExamplesOfTextHaveALength(t *testing.T) {
	for _, c := range []struct {
		least, most int
		want        string
	}{{0, 10, "text"}, {0, 2, "te"}, {6, 7, "text te"}, {0, 0, ""}} {
		s, ok := text(ordered.Of("type", "string", "format", "color", "minLength", ordered.Number(strconv.Itoa(c.least)), "maxLength", ordered.Number(strconv.Itoa(c.most))))
		if s != c.want || !ok {
			t.Errorf("%d to %d: %q, %v", c.least, c.most, s, ok)
		}
	}
}
