package policy_test

import (
	"fmt"
	"testing"

	"belfry/pkg/store/policy"
)

func TestUsesOfWholeObjectsAreFound(t *testing.T) {
	for rule, want := range map[string]string{
		"object.a == user.b && has(object.c) && object['d'] == 1 && 'e' in object": "[]",
		"object == input":                    "[object 1:1]",
		"object[input.name] == 1":            "[object 1:1]",
		"input.name in object":               "[object 1:15]",
		"object.all(k, k == 'x')":            "[object 1:1]",
		"[object].size() == 1":               "[object 1:2]",
		"linked.list.a == 1":                 "[]",
		"linked.list == object.a":            "[linked 1:1]",
		"linked.list[input.x] == 1":          "[linked 1:1]",
		"linked['list']['a'] == 1":           "[]",
		"[1].exists(object, object==1)":      "[]",
		"object.exists(object, object=='x')": "[object 1:1]",
		"[1].exists(x, object == x)":         "[object 1:15]",
		"type(object) == map":                "[object 1:6]",
		"nonsense(":                          "[]",
	} {
		got := "["
		for i, f := range policy.Unnamed(rule) {
			if i > 0 {
				got += " "
			}
			got += fmt.Sprintf("%s %d:%d", f.Variable, f.Line, f.Column)
		}
		if got += "]"; got != want {
			t.Errorf("%s: %s, want %s", rule, got, want)
		}
	}
}
