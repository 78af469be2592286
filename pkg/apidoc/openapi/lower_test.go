package openapi_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"belfry/pkg/api/modeltest"
)

// lowered is the document in 3.0 of a store A with a schema file.
func lowered(t *testing.T, schema string) []byte {
	t.Helper()
	file := filepath.Join(t.TempDir(), "a.json")
	if err := os.WriteFile(file, []byte(schema), 0o600); err != nil {
		t.Fatal(err)
	}
	return modeltest.OpenAPI30(t,
		`{authentication: {passkeys: {}, providers: {email: {}}}, binaries: {b: {}}, baseURL: "https://example.org", stores: {A: {schema: "`+file+`", expose: {list: true}}}}`)
}

// What 3.0 has no word for is said as far as it has.
func TestLoweredKeywords(t *testing.T) {
	for _, c := range []struct{ name, schema, want string }{
		{"nullable", `{"type":["string","null"]}`, `{"nullable":true,"type":"string"}`},
		{"a constant", `{"const":"a"}`, `{"enum":["a"],"type":"string"}`},
		{"a constant that is no text", `{"const":true}`, `{"type":"boolean"}`},
		{"null among values", `{"enum":["a",null]}`, `{"enum":["a"],"nullable":true,"type":"string"}`},
		{"null among values of several types", `{"enum":["a",1,null]}`, `{}`},
		{"null alone", `{"const":null}`, `{}`},
		{"null among several types", `{"type":["string","integer","null"]}`,
			`{"oneOf":[{"nullable":true,"type":"string"},{"type":"integer"}]}`},
		{"values of several types", `{"enum":["a",1]}`, `{}`},
		{"bounds", `{"type":"number","exclusiveMinimum":0,"exclusiveMaximum":9}`,
			`{"exclusiveMaximum":true,"exclusiveMinimum":true,"maximum":9,"minimum":0,"type":"number"}`},
		{"several types", `{"type":["string","array"],"items":{"type":"string"}}`,
			`{"oneOf":[{"type":"string"},{"items":{"type":"string"},"type":"array"}]}`},
		{"or null", `{"anyOf":[{"type":"string"},{"type":"null"}]}`, `{"nullable":true,"type":"string"}`},
		{"alternatives of objects",
			`{"anyOf":[{"type":"object","properties":{"a":{"type":"string"},"b":{}},"required":["a","b"]},{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}]}`,
			`{"properties":{"a":{"type":"string"},"b":{}},"required":["a"],"type":"object"}`},
		{"all of parts with an example",
			`{"allOf":[{"type":"object","properties":{"a":{"type":"string"}},"examples":[{"a":"x"}]},{"type":"object","required":["b"],"properties":{"b":{"type":"string"}}}]}`,
			`{"properties":{"a":{"type":"string"},"b":{"type":"string"}},"required":["b"],"type":"object"}`},
		{"tuples", `{"type":"array","items":[{"type":"string"}],"additionalItems":false}`,
			`{"items":{},"type":"array"}`},
		{"patterns", `{"type":"object","patternProperties":{"^x":{}},"additionalProperties":false}`,
			`{"additionalProperties":true,"type":"object"}`},
		{"conditions", `{"type":"string","if":{"minLength":3},"then":{"maxLength":1},"not":{"const":"a"}}`,
			`{"type":"string"}`},
		{"null among components", `{"anyOf":[{"$ref":"#/$defs/Thing"},{"$ref":"#/$defs/Text"},{"type":"null"}]}`,
			`{"oneOf":[{"$ref":"#/components/schemas/AThing"},{"nullable":true,"type":"string"}]}`},
		{"null in several alternatives",
			`{"anyOf":[{"type":["string","null"]},{"$ref":"#/$defs/Thing"},{"type":["integer","null"]}]}`,
			`{"oneOf":[{"nullable":true,"type":"string"},{"$ref":"#/components/schemas/AThing"},{"type":"integer"}]}`},
		{"null in a component and beside it", `{"anyOf":[{"$ref":"#/$defs/Perhaps"},{"type":"array"},{"type":"null"}]}`,
			`{"oneOf":[{"nullable":true,"type":"string"},{"items":{},"type":"array"}]}`},
		{"an alternative of several types and null", `{"anyOf":[{"$ref":"#/$defs/Any"},{"type":"array"}]}`,
			`{"oneOf":[{"nullable":true,"type":"string"},{"type":"integer"},{"items":{},"type":"array"}]}`},
		{"alternatives in alternatives",
			`{"anyOf":[{"anyOf":[{"$ref":"#/$defs/Thing"},{"$ref":"#/$defs/Text"},{"type":"null"}]},{"$ref":"#/$defs/Perhaps"},{"type":"null"}]}`, `{}`},
		{"alternatives in alternatives of " +
			"other types",
			`{"anyOf":[{"anyOf":[{"$ref":"#/$defs/Thing"},{"$ref":"#/$defs/Text"},{"type":"null"}]},{"type":"boolean"},{"type":"null"}]}`,
			`{"oneOf":[{"$ref":"#/components/schemas/AThing"},{"$ref":"#/components/schemas/AText"},{"nullable":true,"type":"boolean"}]}`},
		{"an alternative of several values and null", `{"anyOf":[{"enum":["a",1,null]},{"type":"array"}]}`, `{}`},
		{"an alternative of anything", `{"anyOf":[{"anyOf":[{},{"type":"null"}]},{"type":"array"}]}`, `{}`},
		{"alternatives of objects and null",
			`{"anyOf":[{"type":["object","null"],"properties":{"a":{}}},{"type":"object","properties":{"b":{}}}]}`,
			`{"nullable":true,"properties":{"a":{},"b":{}},"type":"object"}`},
		{"alternatives of parts",
			`{"allOf":[{"anyOf":[{"type":"boolean"},{"type":"null"}]},{"anyOf":[{"type":"string"},{"type":"boolean"},{"type":"null"}]}]}`, `{"nullable":true,"type":"boolean"}`},
		{"numbers and null", `{"type":["number","integer","null"]}`, `{"nullable":true,"type":"number"}`},
		{"bounds of both kinds", `{"type":"number","exclusiveMinimum":3,"minimum":5,"maximum":9,"exclusiveMaximum":8}`,
			`{"exclusiveMaximum":true,"exclusiveMinimum":true,"maximum":8,"minimum":3,"type":"number"}`},
		{"bounds of parts",
			`{"allOf":[{"type":"number","minimum":5,"maximum":8},{"type":"number","exclusiveMinimum":3,"exclusiveMaximum":9}]}`, `{"maximum":8,"minimum":5,"type":"number"}`},
		{"a property named example", `{"properties":{"example":{"type":["string","integer","null"]}}}`,
			`{"properties":{"example":{"oneOf":[{"nullable":true,"type":"string"},{"type":"integer"}]}},"type":"object"}`},
	} {
		text := lowered(t,
			`{"$defs":{"Text":{"type":"string"},"Perhaps":{"type":["string","null"]},"Any":{"type":["string","integer","null"]},"Thing":{"type":"object","properties":{"a":{}}}},
			"properties":{"x":`+c.schema+`}}`)
		got, err := json.Marshal(at(t, text, "components schemas A properties x"))
		if err != nil || string(got) != c.want {
			t.Errorf("%s: %s, want %s (%v)", c.name, got, c.want, err)
		}
	}
}

// Where a schema of belfry's own has several types or says nothing of an object, generators fail or make types of no
// use. allOf, in which they are merged, is of problems alone.
func TestSchemasOfBelfryItselfAreForGenerators(t *testing.T) {
	text := modeltest.OpenAPI(t,
		`{authentication: {passkeys: {}, deletion: {enabled: true}, redirects: ["https://example.org/in"], providers: {email: {login: {code: true}}}}, baseURL: "https://example.org",
		binaries: {b: {}}, stores: {A: {expose: {list: true}, map: {B: {key: b, target: as}}}, B: {expose: {list: true}}}}`)
	var document any
	if err := json.Unmarshal(text, &document); err != nil {
		t.Fatal(err)
	}
	ids := map[string]bool{}
	var check func(path string, v any)
	check = func(path string, v any) {
		switch v := v.(type) {
		case []any:
			for _, inner := range v {
				check(path, inner)
			}
		case map[string]any:
			if types, ok := v["type"].([]any); ok && (len(types) != 2 || !slices.Contains(types, any("null"))) {
				t.Errorf("%s has the types %v", path, types)
			}
			_, more := v["additionalProperties"]
			properties, has := v["properties"].(map[string]any)
			if v["type"] == "object" && !more && len(properties) == 0 {
				t.Errorf("%s is an object of which nothing is said", path)
			}
			if (v["const"] != nil || v["enum"] != nil) && v["type"] == nil {
				t.Errorf("%s has values of no type", path)
			}
			for name := range v {
				if required, ok := v["required"].([]any); ok && has && !strings.Contains(path, "allOf") {
					for _, r := range required {
						if properties[r.(string)] == nil {
							t.Errorf("%s requires %s, which it does not describe", path, r)
						}
					}
				}
				if name == "operationId" {
					id := v[name].(string)
					if ids[id] || strings.ContainsFunc(id, func(r rune) bool {
						return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9')
					}) {
						t.Errorf("%s is taken, or no identifier", id)
					}
					ids[id] = true
				}
				if name != "examples" && name != "example" {
					check(path+" "+name, v[name])
				}
			}
		}
	}
	check("", document)
	if len(ids) < 50 {
		t.Errorf("only %d operations", len(ids))
	}
}
