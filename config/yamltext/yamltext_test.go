package yamltext

import (
	"strings"
	"testing"
)

func TestOneDocumentIsRead(t *testing.T) {
	for _, text := range []string{"a: b", "# nothing else\na: b\n", "%YAML 1.2\n---\na: b\n", "\ufeff{\"a\": \"b\"}",
		"{\n\t\"a\": \"\\u0062\"\n}"} {
		root, fault := Parse([]byte(text))
		if fault != nil || len(root.Content) != 2 || root.Content[0].Value != "a" || root.Content[1].Value != "b" {
			t.Errorf("%q: %v", text, fault)
		}
	}
	for _, text := range []string{"", "\n", "# nothing\n"} {
		if root, fault := Parse([]byte(text)); root != nil || fault != nil {
			t.Errorf("%q: %v, %v", text, root, fault)
		}
	}
}

func TestFaultsSayWhereAndWhat(t *testing.T) {
	for text, want := range map[string]Fault{
		"a: b\nc: \xff":   {2, "the byte 0xff is not UTF-8; expected text in UTF-8"},
		"a: b\n---\nc: d": {2, "a second YAML document starts here; expected one"},
		"a:\n\tc: d": {2, "is not valid YAML: found character that cannot start any token (indent with " +
			"spaces, not tabs; a value that begins with @, % or ` needs quotes)"},
		"a: b\nc: {d: ${E}}": {2,
			`is not valid YAML: a value with ${...} needs quotes between { } and [ ], as in {password: "${NAME}"}`},
		"a: *hunter2": {1, "is not valid YAML: an alias refers to no anchor (a value that begins with * needs quotes)"},
		"a: &a [*a]":  {0, "is nested deeper than 32 levels"},
		"a: [" + strings.Repeat("b,", 20_000) + "]": {0,
			"has more than 20000 values; an alias counts each time it is used"},
		strings.Repeat("#", MaxFile+1): {0, "is larger than 1024 KiB, the limit of a configuration"},
	} {
		if root, fault := Parse([]byte(text)); root != nil || fault == nil || *fault != want {
			t.Errorf("%.40q: %v, want %v", text, fault, want)
		}
	}
}
