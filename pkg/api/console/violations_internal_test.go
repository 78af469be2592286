package console

import (
	"strings"
	"testing"

	"belfry/pkg/errs"
)

func TestViolationsHaveTheirLines(t *testing.T) {
	t.Parallel()
	const text = `{
  "title": "a\nb",
  "list": [1, {
      "a/b": 2}, 3,
    [4,
     5]],
  "deep":
    {"": {"x": 1}}, "last": null
}`
	for pointer, line := range map[string]int{
		"": 0, "/nothing": 0, "/nothing/at/all": 0, "/title": 2, "/list": 3, "/list/0": 3, "/list/1": 3,
		"/list/1/a~1b": 4, "/list/2": 4, "/list/3": 5,
		"/list/3/1": 6, "/list/9": 3, "/list/1/missing": 3, "/deep": 7, "/deep/": 8, "/deep//x": 8, "/deep//y/z": 8,
		"/last": 8, "/title/0": 2,
	} {
		for _, text := range []string{text, strings.ReplaceAll(text, "\n", "\r\n")} {
			if got := violationsIn(text,
				[]errs.Field{{Pointer: "/last"}, {Pointer: pointer, Message: "m"},
					{Pointer: pointer}}); got[0].Line != 8 || got[1].Line != line || got[2].Line != line ||
				got[1].Message != "m" {
				t.Errorf("%q is in %+v, want line %d", pointer, got, line)
			}
		}
	}
	for _, malformed := range []string{"", "[1]", `{"a":`, `{"a":1}}`, strings.Repeat(`{"a":`, 100_000)} {
		if got := violationsIn(malformed, []errs.Field{{Pointer: "/a"}}); got[0].Line != 0 {
			t.Errorf("%.20s: %+v", malformed, got)
		}
	}
}
