package object_test

import (
	"testing"

	"belfry/pkg/object"
)

func TestWithout(t *testing.T) {
	const text = `{"a":1,"b\u0022c":{"a":2},"d":"x"}`
	for left, want := range map[string]string{
		"":    `{"a":1,"b\"c":{"a":2},"d":"x"}`,
		"a":   `{"b\"c":{"a":2},"d":"x"}`,
		`b"c`: `{"a":1,"d":"x"}`,
		"d":   `{"a":1,"b\"c":{"a":2}}`,
	} {
		if got := string(object.Without([]byte(text), func(name string) bool { return name == left })); got != want {
			t.Errorf("without %q: %s, want %s", left, got, want)
		}
	}
	if got := string(object.Without([]byte(text), func(string) bool { return true })); got != "{}" {
		t.Errorf("without any: %s", got)
	}
}
