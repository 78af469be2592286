package apimodel

import (
	"testing"

	"belfry/internal/ordered"
	"belfry/pkg/store/schema/schematest"
)

// parseSchema reads a schema that is an object.
func parseSchema(t *testing.T, text string) *ordered.Object {
	t.Helper()
	v, err := ordered.Value([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	s, ok := v.(*ordered.Object)
	if !ok {
		t.Fatalf("%s is not an object", text)
	}
	return s
}

func TestPlainSchemasAreWhatGeneratorsTake(t *testing.T) {
	for _, c := range []struct{ name, schema, want string }{
		{"one type", `{"type":["string"]}`, `{"type":"string"}`},
		{"nullable", `{"type":["string","null"],"maxLength":3}`, `{"type":["string","null"],"maxLength":3}`},
		{"whole numbers are numbers", `{"type":["integer","number"],"minimum":1}`, `{"type":"number","minimum":1}`},
		{"whole numbers are numbers, beside null", `{"type":["integer","null","number"]}`,
			`{"type":["null","number"]}`},
		{"several types", `{"type":["string","array"],"items":{"type":"string"},"maxLength":3,"description":"d"}`,
			`{"description":"d","anyOf":[{"type":"string","maxLength":3},{"type":"array","items":{"type":"string"}}]}`},
		{"several types and null", `{"type":["boolean","string","null"]}`,
			`{"anyOf":[{"type":"boolean"},{"type":"string"},{"type":"null"}]}`},
		{"beside alternatives", `{"type":["boolean","string"],"anyOf":[{"const":true}]}`,
			`{"anyOf":[{"type":"boolean"},{"type":"string"}],"allOf":[{"anyOf":[{"const":true}]}]}`},
		{"what is evaluated stays together",
			`{"type":["object","string"],"properties":{"a":{}},"unevaluatedProperties":false}`,
			`{"properties":{"a":{}},"unevaluatedProperties":false,"anyOf":[{"type":"object"},{"type":"string"}]}`},
		{"in every place",
			`{"properties":{"type":{"type":["boolean","string"]}},"items":{"type":["boolean","string"]}}`,
			`{"properties":{"type":{"anyOf":[{"type":"boolean"},{"type":"string"}]}},"items":{"anyOf":[{"type":"boolean"},{"type":"string"}]}}`},
		{"a free object", `{"type":"object","description":"d"}`,
			`{"type":"object","description":"d","additionalProperties":true}`},
		{"a free object of several types", `{"type":["object","string"]}`,
			`{"anyOf":[{"type":"object","additionalProperties":true},{"type":"string"}]}`},
		{"an object that is known", `{"type":"object","properties":{"a":{}}}`,
			`{"type":"object","properties":{"a":{}}}`},
		{"a part of an object", `{"allOf":[{"type":"object"}],"unevaluatedProperties":false}`,
			`{"allOf":[{"type":"object"}],"unevaluatedProperties":false}`},
		{"a default", `{"type":"integer","default":7,"description":"How many."}`,
			"{\"type\":\"integer\",\"description\":\"How many. Default: `7`.\"}"},
		{"a property of this name", `{"properties":{"default":{"default":false}}}`,
			"{\"properties\":{\"default\":{\"description\":\"Default: `false`.\"}}}"},
	} {
		s := parseSchema(t, c.schema)
		if got, err := Plain(s).MarshalJSON(); err != nil || string(got) != c.want {
			t.Errorf("%s: %s, %v; want %s", c.name, got, err, c.want)
		}
	}
}

// A plain schema accepts what the schema accepts, and nothing else.
func TestPlainSchemasAcceptTheSame(t *testing.T) {
	values := []any{nil, true, "a", "abcd", 1.0, 1.5, -2.0, []any{}, []any{"a"}, []any{1.0}, map[string]any{},
		map[string]any{"a": 1.0}, map[string]any{"b": "x"}}
	for _, text := range []string{
		`{"type":["string","array"],"items":{"type":"string"},"maxLength":3}`,
		`{"type":["integer","number","null"],"minimum":0}`,
		`{"type":["object","string"],"properties":{"a":{"type":["string","boolean"]}},"additionalProperties":false,"minLength":2}`,
		`{"type":["object","array"],"properties":{"a":{}},"unevaluatedProperties":false,"anyOf":[{"required":["a"]},{"type":"array"}]}`,
		`{"type":["object","null"],"allOf":[{"type":"object"}],"unevaluatedProperties":false}`,
		`{"type":["boolean","string","number"],"enum":[true,"a",1]}`,
		`{"allOf":[{"type":["object","string"]}],"unevaluatedProperties":false}`,
		`{"not":{"type":["object","string"],"required":["a"]}}`,
		`{"if":{"type":"object"},"then":{"type":["object","string"],"maxProperties":0},"else":{"type":["array","string"],"uniqueItems":true,"default":[]}}`,
	} {
		s := parseSchema(t, text)
		one, err := schematest.Compile(s)
		if err != nil {
			t.Fatal(err)
		}
		other, err := schematest.Compile(Plain(s))
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range values {
			if a, b := one.Validate(v) == nil, other.Validate(v) == nil; a != b {
				t.Errorf("%s: %v is valid: %t, and plain: %t", text, v, a, b)
			}
		}
	}
}

func TestNamesOfStoresLeaveThoseOfTheirSchemas(t *testing.T) {
	n := Names{}
	for _, c := range [][2]string{{"Books", "Books"}, {"BooksInput", "BooksInput2"}, {"Book", "Book"},
		{"BooksPage", "BooksPage2"}, {"CupInput", "CupInput"}, {"Cup", "Cup2"}} {
		if got := n.TakeWith(c[0], suffixes()...); got != c[1] {
			t.Errorf("%s is called %s, want %s", c[0], got, c[1])
		}
	}
	if got := n.Take("BooksPatch"); got != "BooksPatch2" {
		t.Errorf("a part is called %s", got)
	}
}
