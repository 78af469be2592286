package decode

import (
	"strings"
	"testing"
)

func environment(name string) (string, bool) {
	value, set := map[string]string{"PORT": "8099", "EMPTY": "", "NOISE": "a: {b: [${PORT}"}[name]
	return value, set
}

func TestSubstitution(t *testing.T) {
	for text, want := range map[string]string{
		"plain $PORT {x}":       "plain $PORT {x}",
		"${PORT}":               "8099",
		"a${PORT}b${PORT}c":     "a8099b8099c",
		"${NONE:-fallback}":     "fallback",
		"${EMPTY:-fallback}":    "fallback",
		"${PORT:-fallback}":     "8099",
		"${NONE:-}":             "",
		"${EMPTY}":              "",
		"${NONE:-a:-b}":         "a:-b",
		"$${PORT}":              "${PORT}",
		"$${PORT} ${PORT} $${":  "${PORT} 8099 ${",
		"${NOISE}":              "a: {b: [${PORT}", // neither expanded again nor parsed as YAML
		"${NONE:-$}${NONE:-$}{": "$${",
	} {
		got, replaced, err := expand(text,
			func(reference string) (string, error) { return lookup(reference, environment) })
		if err != nil || got != want {
			t.Errorf("%s: got %q, error %v; want %q", text, got, err, want)
		}
		if replaced != (strings.Contains(strings.ReplaceAll(text, "$${", ""), "${")) {
			t.Errorf("%s: replaced is %v", text, replaced)
		}
	}
}
