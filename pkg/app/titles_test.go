package app

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"belfry/pkg/app/plan"
)

// The name of an object is by default the first text that the schema requires and that is for people.
func TestTheDefaultTitleIsARequiredText(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		schema, store string
		title         []string
	}{
		"none": {`{}`, ``, nil},
		"required": {`{"required": ["b", "a"],
			"properties": {"a": {"type": "string"}, "b": {"type": "string"}}}`, ``, []string{"b"}},
		"optional": {`{"properties": {"a": {"type": "string"}}}`, ``, nil},
		"a number": {`{"required": ["n", "a"],
			"properties": {"n": {"type": "integer"}, "a": {"type": "string"}}}`, ``, []string{"a"}},
		"a uuid": {`{"required": ["u", "a"],
			"properties": {"u": {"type": "string", "format": "uuid"}, "a": {"type": "string"}}}`, ``, []string{"a"}},
		"of a part": {`{"allOf": [{"$ref": "#/$defs/x"}], "$defs": {"x": {"required": ["a"],
			"properties": {"a": {"$ref": "#/$defs/s"}}}, "s": {"type": "string"}}}`, ``, []string{"a"}},
		"of one of several": {`{"anyOf": [{"required": ["a"]}, {}], "properties": {"a": {"type": "string"}}}`, ``, nil},
		"the server's": {`{"required": ["uuid", "created", "a.b", "a"], "properties": {"uuid": {"type": "string"},
			"created": {"type": "string"}, "a.b": {"type": "string"}, "a": {"type": "string"}}}`, ``, []string{"a"}},
		"references, keys and owners": {`{"required": ["r", "k", "o", "p", "q", "a"], "properties": {
			"r": {"type": "string"}, "k": {"type": "string"}, "o": {"type": "string"}, "p": {"type": "string"},
			"q": {"type": "string"}, "a": {"type": "string"}}}`,
			`references: {r: Others}, map: {Others: {key: k, target: copies}}, owner: o, private: [p],
			fields: {q: {read: "false"}},`, []string{"a"}},
		"configured": {`{"required": ["a"], "properties": {"a": {"type": "string"}}}`, `title: [t, u],`,
			[]string{"t", "u"}},
		"with a rule": {`{"required": ["a"], "properties": {"a": {"type": "string"}}}`,
			`fields: {a: {read: user != null}},`, []string{"a"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t, "")
			if err := os.WriteFile(filepath.Join(p.folder, "it.json"), []byte(c.schema), 0o600); err != nil {
				t.Fatal(err)
			}
			compiled, err := plan.Compile(p.load("stores: {Others: {}, Things: {" + c.store + " schema: it.json}}"))
			if err != nil {
				t.Fatal(err)
			}
			if got := compiled.Titles["Things"]; !slices.Equal(got, c.title) {
				t.Errorf("%v, expected %v", got, c.title)
			}
		})
	}
}
