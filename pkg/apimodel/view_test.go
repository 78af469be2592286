package apimodel

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"belfry/internal/ordered"
	"belfry/pkg/store/schema"
	"belfry/pkg/store/schema/schematest"
)

// ported is the schema of a store's file.
type ported struct {
	root     *ordered.Object
	parts    map[string]*ordered.Object
	compiled map[string]*jsonschema.Schema // views, by their text
}

func portText(t *testing.T, text []byte) ported {
	t.Helper()
	names := Names{}
	p, err := schema.Port("it.json", text,
		func(name string) string { return "#/$defs/" + names.Take(Identifier(name)) })
	if err != nil {
		t.Fatal(err)
	}
	out := ported{p.Root, map[string]*ordered.Object{}, map[string]*jsonschema.Schema{}}
	for _, part := range p.Parts {
		out.parts[part.Ref] = part.Schema
	}
	return out
}

// compile compiles a view with another implementation of JSON Schema.
func (p ported) compile(t *testing.T, seen *ordered.Object) *jsonschema.Schema {
	t.Helper()
	defs := &ordered.Object{}
	for ref, part := range p.parts {
		defs.Set(ref[len("#/$defs/"):], part)
	}
	whole := ordered.Of("allOf", []any{seen}, "$defs", defs)
	text, err := whole.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	if s := p.compiled[string(text)]; s != nil {
		return s
	}
	s, err := schematest.Compile(whole)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	p.compiled[string(text)] = s
	return s
}

// Every valid object of the official suite is validated in the representations of
// clients: without a private field, with server fields, in parts and as a patch.
func TestViewsAcceptAllValidObjects(t *testing.T) {
	seen := 0
	for _, draft := range []string{"draft2020-12", "draft2019-09", "draft7"} {
		files, err := filepath.Glob("../store/schema/testdata/suite/tests/" + draft + "/*.json")
		if err != nil || len(files) == 0 {
			t.Fatal(err)
		}
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var groups []struct {
				Description string
				Schema      json.RawMessage
				Tests       []struct {
					Description string
					Data        json.RawMessage
					Valid       bool
				}
			}
			if err := json.Unmarshal(data, &groups); err != nil {
				t.Fatal(err)
			}
			for _, g := range groups {
				if draft == "draft7" {
					g.Schema = bytes.Replace(g.Schema, []byte("{"),
						[]byte(`{"$schema":"http://json-schema.org/draft-07/schema#",`), 1)
					g.Schema = bytes.Replace(g.Schema, []byte(",}"), []byte("}"), 1)
				}
				if _, err := schema.Compile(file, g.Schema); err != nil {
					continue
				}
				p := portText(t, g.Schema)
				for _, test := range g.Tests {
					var o map[string]any
					if test.Valid && json.Unmarshal(test.Data, &o) == nil && o != nil {
						seen++
						p.wantInViews(t, filepath.Base(file)+": "+g.Description+": "+test.Description, o)
					}
				}
			}
		}
	}
	if seen < 300 {
		t.Errorf("only %d objects were checked", seen)
	}
}

// wantInViews asserts that an object is valid in the views that hide each of its
// fields in turn.
func (p ported) wantInViews(t *testing.T, what string, o map[string]any) {
	t.Helper()
	hidden := []string{"no such field"}
	for name := range o {
		hidden = append(hidden, name)
	}
	for _, gone := range hidden {
		v := view{parts: p.parts, gone: set([]string{gone}), free: set([]string{"created", "f.o", "x_free"})}
		visible := maps.Clone(o)
		delete(visible, gone)
		for name := range v.free {
			if _, known := o[name]; known {
				return // then the schema has a rule for it
			}
			visible[name] = []any{"anything"}
		}
		p.want(t, v, what+", without "+gone, visible)
		for name, value := range visible {
			one := map[string]any{name: value}
			v.partial, v.patch = true, false
			p.want(t, v, what+", only "+name, one)
			v.patch = true
			p.want(t, v, what+", only "+name, one)
			p.want(t, v, what+", null for "+name, map[string]any{name: nil})
		}
	}
}

func (p ported) want(t *testing.T, v view, what string, o map[string]any) {
	t.Helper()
	seen, _ := v.apply(p.root)
	if err := p.compile(t, seen).Validate(o); err != nil {
		text, _ := seen.MarshalJSON()
		t.Errorf("%s: %v\nis seen as %s", what, err, text)
	}
}

func TestViewsRewriteKeywords(t *testing.T) {
	for _, c := range []struct{ name, schema, want string }{
		{"a private field", `{"required":["a","p"],"properties":{"a":{"type":"string"},"p":{"type":"string"}}}`,
			`{"required":["a"],"properties":{"a":{"type":"string"}}}`},
		{"a closed schema", `{"properties":{"a":{}},"additionalProperties":false}`,
			`{"properties":{"a":{},"created":{}},"additionalProperties":false}`},
		{"a reference to the whole",
			`{"$ref":"#/$defs/x","$defs":{"x":{"title":"X","required":["p"],"properties":{"p":{},"b":{"$ref":"#/$defs/x"}}}}}`,
			`{"title":"X","properties":{"b":{"$ref":"#/$defs/X"}}}`},
		{"what depends on what is hidden",
			`{"dependentRequired":{"a":["p"],"p":["a"],"b":["a","p"]},"if":{"required":["p"]},"then":{"required":["a"]}}`,
			`{"dependentRequired":{"b":["a"]}}`},
		{"what does not", `{"if":{"required":["a"]},"then":{"required":["b","p"]},"not":{"required":["c"]}}`,
			`{"if":{"required":["a"]},"then":{"required":["b"]},"not":{"required":["c"]}}`},
		{"one of several", `{"oneOf":[{"required":["a"]},{"required":["p"]}]}`, `{}`},
		{"one of several that are left", `{"oneOf":[{"required":["a"]},{"required":["b","p"]}]}`,
			`{"allOf":[{"anyOf":[{"required":["a"]},{"required":["b"]}]}]}`},
		{"patterns", `{"patternProperties":{"^c":{"type":"null"},"^x":{"type":"null"}}}`,
			`{"patternProperties":{"^c":{},"^x":{"type":"null"}}}`},
	} {
		p := portText(t, []byte(c.schema))
		v := view{parts: p.parts, gone: set([]string{"p"}), free: set([]string{"created"})}
		seen, _ := v.apply(p.root)
		if got, err := seen.MarshalJSON(); err != nil || string(got) != c.want {
			t.Errorf("%s: got %s, %v; want %s", c.name, got, err, c.want)
		}
	}
}

func TestNamesAreUnique(t *testing.T) {
	n := Names{}
	for _, c := range [][2]string{{"sold-books", "SoldBooks"}, {"soldBooks", "SoldBooks2"},
		{"Sold_Books", "SoldBooks3"}, {"ünter", "Nter"}, {"--", "Part"}} {
		if got := n.Take(Identifier(c[0])); got != c[1] {
			t.Errorf("%s is called %s, want %s", c[0], got, c[1])
		}
	}
}

// A document contains neither the name nor the schema of a private field, whatever
// keyword of the schema file has it.
func TestPrivateFieldsAreNotInTheDocument(t *testing.T) {
	p := portText(t, []byte(`{
		"properties": {"a": {"type": "string"}, "pin": {"const": "secret-value"}}, "required": ["a", "pin"],
		"patternProperties": {"^p.n$": {"const": "secret-value"}, "^a": {"minLength": 1}},
		"propertyNames": {"enum": ["a", "pin"]},
		"dependentRequired": {"pin": ["a"], "a": ["pin"]}, "dependentSchemas": {"a": {"properties": {"pin": {"const": "secret-value"}}}},
		"anyOf": [{"properties": {"pin": {"const": "secret-value"}}}, {"required": ["pin"]}],
		"if": {"properties": {"pin": {"const": "secret-value"}}}, "then": {"required": ["a"]},
		"not": {"properties": {"pin": {"const": "secret-value"}}}, "allOf": [{"$ref": "#/$defs/more"}],
		"enum": [{"pin": "secret-value"}], "const": {"pin": "secret-value"}, "default": {"pin": "secret-value"}, "examples": [{"pin": "secret-value"}],
		"$defs": {"more": {"properties": {"pin": {"description": "secret-value"}}}}
	}`))
	for name, v := range map[string]view{"whole": {}, "partial": {partial: true},
		"patch": {partial: true, patch: true}} {
		v.parts, v.gone, v.free = p.parts, set([]string{"pin"}), set([]string{"created"})
		seen, _ := v.apply(p.root)
		text, err := seen.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(text, []byte("pin")) || bytes.Contains(text, []byte("secret-value")) ||
			!bytes.Contains(text, []byte(`"a"`)) {
			t.Errorf("%s: %s", name, text)
		}
	}
}

// An object from which a rule has hidden a field is valid, whatever the schema file requires of the field.
func TestFieldsThatMayBeHiddenAreOptional(t *testing.T) {
	p := portText(t, []byte(`{
		"properties": {"a": {"type": "string"}, "phone": {"type": "string"}}, "required": ["a", "phone"],
		"if": {"properties": {"phone": {"const": "1"}}}, "then": {"required": ["b"]},
		"dependentRequired": {"a": ["phone"]}, "not": {"properties": {"phone": {"const": "2"}}},
		"anyOf": [{"required": ["phone"]}, {"required": ["b"]}], "additionalProperties": false
	}`))
	v := view{parts: p.parts, hideable: set([]string{"phone"})}
	seen, _ := v.apply(p.root)
	text, err := seen.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"properties":{"a":{"type":"string"},"phone":{"type":"string"}},"required":["a"],"additionalProperties":false}`
	var got, wanted any
	if json.Unmarshal(text, &got) != nil || json.Unmarshal([]byte(want), &wanted) != nil ||
		!reflect.DeepEqual(got, wanted) {
		t.Errorf("%s, want %s", text, want)
	}
}

// Inlined without a limit, references that each have two others grow exponentially.
func TestInliningOfReferencesIsLimited(t *testing.T) {
	const levels = 60
	parts := map[string]*ordered.Object{fmt.Sprint(levels): ordered.Of("type", "object")}
	for i := range levels {
		next := ordered.Of("$ref", fmt.Sprint(i+1))
		parts[fmt.Sprint(i)] = ordered.Of("allOf", []any{next, next})
	}
	v := view{parts: parts}
	if _, exact := v.apply(ordered.Of("$ref", "0")); exact {
		t.Error("all of it was written")
	}
}
