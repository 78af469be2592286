package form_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"belfry/pkg/api/console/form"
)

// TestLargeObjectsAreJSON, and what a form can't express: recursion, depth, many rows.
func TestLargeObjectsAreJSON(t *testing.T) {
	t.Parallel()
	s := schemaOf(t, recipe, form.Options{})
	list, _ := json.Marshal(map[string]any{"tags": make([]string, 500), "title": "a"})
	f := show(t, s, string(list))
	if field(t, f, "/tags").Kind != form.JSON || field(t, f, "/steps").Kind != form.List {
		t.Error("500 rows are a list")
	}
	wide := &strings.Builder{}
	for i := range 500 {
		fmt.Fprintf(wide, `,"p%d":{"type":"string"}`, i)
	}
	s = schemaOf(t, `{"type":"object","properties":{"first":{"type":"string"}`+wide.String()+`}}`, form.Options{})
	f = show(t, s, `{"p499":"x","p1":"y"}`)
	count := 0
	f.Each(func(*form.Field) { count++ })
	if count > 201 || f.Other != `{"p499":"x"}` {
		t.Errorf("%d fields, others %s", count, f.Other)
	}
	deep := `{"type":"string"}`
	for range 8 {
		deep = `{"type":"object","properties":{"in":` + deep + `}}`
	}
	f = show(t, schemaOf(t, deep, form.Options{}), `{}`)
	if is := field(t, f, "/in/in/in/in"); is.Kind != form.JSON {
		t.Errorf("%s at the fifth level", is.Kind)
	}
	for _, schema := range []string{
		`{"$ref":"#"}`, `{"$ref":"#/a","a":{"$ref":"#/b"},"b":{"$ref":"#/a"}}`, `{"allOf":[{"$ref":"#"}]}`, `{}`,
		`{"type":"array"}`, `{"$ref":"https://example.org/x"}`, `{"anyOf":[{"$ref":"#"},{"type":"null"}]}`,
	} {
		if f := show(t, schemaOf(t, schema, form.Options{}), `{"a":1}`); f.Usable() {
			t.Errorf("%s gives a form", schema)
		}
	}
}

func TestOptionsSayWhatTheSchemaDoesNot(t *testing.T) {
	t.Parallel()
	s := schemaOf(t, recipe, form.Options{
		References: map[string]string{"/mail": "Mails"},
		Omit:       func(p string) bool { return p == "/title" || p == "/amounts/kept" },
		ReadOnly:   func(p string) bool { return p == "/source" },
		Legible:    func(text string) string { return strings.ReplaceAll(text, "\u202e", `\u202e`) },
	})
	base := "{\"title\":\"t\",\"mail\":\"m\",\"source\":{\"book\":\"b\"},\"note\":\"a\u202eb\",\"x\":1}"
	f, text, _ := edit(t, s, base, "/source/book", "other", "/day", "2024-01-01")
	if text != strings.TrimSuffix(base, "}")+`,"day":"2024-01-01"}` {
		t.Error(text)
	}
	if is := field(t, f, "/mail"); is.Kind != form.Reference || is.Target != "Mails" {
		t.Errorf("%+v", is)
	}
	if is := field(t, f, "/note"); is.Kind != form.JSON || is.Text != `"a\u202eb"` {
		t.Errorf("%s %s", is.Kind, is.Text)
	}
	if f.Other != `{"x":1}` {
		t.Error(f.Other)
	}
}

// FuzzNothingIsChanged makes forms of any schema and any object.
func FuzzNothingIsChanged(f *testing.F) {
	f.Add(recipe, `{"title":"a","tags":["x"],"amounts":{"a":1}}`)
	f.Add(`{"properties":{"a":{"anyOf":[{"type":"string"},{"type":"null"}]},"~":{"items":{}}}}`, `{"a":null,"~":[[]]}`)
	f.Add(`{"additionalProperties":{"type":"array","items":{"type":["integer","string"]}}}`, `{"0":[1,"a"],"~r0":[]}`)
	f.Add(`{"allOf":[{"properties":{"a":{"const":1}}},{"properties":{"b":{"enum":[[1]]}}}]}`, `{"a":2,"b":[1]}`)
	f.Add(`{"properties":{"a":{"type":["object","null"],"additionalProperties":{"type":"boolean"}}}}`,
		`{"a":{"":true}}`)
	f.Fuzz(func(t *testing.T, schema, base string) {
		s, err := form.New([]byte(schema), form.Options{})
		if err != nil {
			return
		}
		shown, err := s.Show([]byte(base))
		if err != nil {
			return
		}
		_, text, problems, err := s.Submit([]byte(base), sent(shown))
		if err != nil || len(problems) > 0 {
			t.Fatalf("%v, %v", err, problems)
		}
		if string(text) != shown.Base {
			t.Fatalf("%s became %s", shown.Base, text)
		}
	})
}
