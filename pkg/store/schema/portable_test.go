package schema_test

import (
	"bytes"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"belfry/internal/ordered"
	"belfry/pkg/store/schema"
	"belfry/pkg/store/schema/schematest"
)

// compilePorted compiles a ported schema with another implementation of draft
// 2020-12.
func compilePorted(p *schema.Portable) (*jsonschema.Schema, error) {
	defs := &ordered.Object{}
	for _, part := range p.Parts {
		defs.Set(strings.TrimPrefix(part.Ref, "#/$defs/"), part.Schema)
	}
	whole := ordered.Of("$schema", "https://json-schema.org/draft/2020-12/schema", "allOf", []any{p.Root}, "$defs",
		defs)
	return schematest.Compile(whole)
}

func port(text string) (*schema.Portable, error) {
	odd := regexp.MustCompile("[^a-z0-9]")
	return schema.Port("it.json", []byte(text),
		func(name string) string { return "#/$defs/" + odd.ReplaceAllString(name, "_") + "!" })
}

// TestPortedSchemasAreEquivalent holds translations against every case of the
// official suite: what is valid stays valid, and hardly anything else becomes so.
func TestPortedSchemasAreEquivalent(t *testing.T) {
	for _, draft := range []struct {
		folder, uri string
		looser      int // cases that the translation allows and the schema does not
	}{
		{"draft2020-12", "https://json-schema.org/draft/2020-12/schema", 8},
		{"draft2019-09", "https://json-schema.org/draft/2019-09/schema", 4},
		{"draft7", "http://json-schema.org/draft-07/schema#", 2},
	} {
		t.Run(draft.folder, func(t *testing.T) {
			validated, looser := 0, 0
			for _, file := range suiteFiles(t, filepath.Join("testdata", "suite", "tests", draft.folder)) {
				for _, group := range readSuite(t, file) {
					group = withSchema(t, group, draft.uri)
					if _, err := schema.Compile(file, group.Schema); err != nil {
						continue
					}
					where := filepath.Base(file) + ": " + group.Description
					ported, err := port(string(group.Schema))
					if err != nil {
						t.Errorf("%s: %v", where, err)
						continue
					}
					validator, err := compilePorted(ported)
					if err != nil {
						t.Errorf("%s: %v", where, err)
						continue
					}
					for _, test := range group.Tests {
						doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(test.Data))
						if err != nil {
							t.Fatal(err)
						}
						validated++
						switch valid := validator.Validate(doc) == nil; {
						case test.Valid && !valid:
							t.Errorf("%s: %s: is refused", where, test.Description)
						case valid && !test.Valid:
							looser++
							t.Logf("%s: %s: is allowed", where, test.Description)
						}
					}
				}
			}
			t.Logf("%d validated, %d looser", validated, looser)
			if validated < 800 || looser > draft.looser {
				t.Errorf("of %d cases %d are allowed that should not be, more than %d", validated, looser, draft.looser)
			}
		})
	}
}

func TestPort(t *testing.T) {
	for _, c := range []struct{ name, schema, want string }{
		{"a tuple", `{"items":[{"type":"string"},true],"additionalItems":false}`,
			`{"prefixItems":[{"type":"string"},{}],"items":{"not":{}}}`},
		{"a tuple without a tuple", `{"additionalItems":false}`, `{}`},
		{"dependencies",
			`{"$schema":"http://json-schema.org/draft-07/schema#","dependencies":{"a":["b"],"c":{"minProperties":2}}}`,
			`{"dependentRequired":{"a":["b"]},"dependentSchemas":{"c":{"minProperties":2}}}`},
		{"keywords beside a reference " +
			"in draft-07",
			`{"$schema":"http://json-schema.org/draft-07/schema#","properties":{"a":{"$ref":"#/definitions/x","type":"null"}},"definitions":{"x":{"type":"string"}}}`,
			`{"properties":{"a":{"$ref":"#/$defs/x!"}}}`},
		{"a schema that contains itself", `{"$recursiveAnchor":true,"properties":{"child":{"$recursiveRef":"#"}}}`,
			`{"properties":{"child":{"$ref":"#/$defs/!"}}}`},
		{"a tuple of draft 2020-12",
			`{"$schema":"https://json-schema.org/draft/2020-12/schema","prefixItems":[{"type":"string"},true],"items":false}`, `{"prefixItems":[{"type":"string"},{}],"items":{"not":{}}}`},
		{"a tree of draft 2020-12",
			`{"$schema":"https://json-schema.org/draft/2020-12/schema","$dynamicAnchor":"node","properties":{"child":{"$dynamicRef":"#node"}}}`, `{"properties":{"child":{"$ref":"#/$defs/!"}}}`},
		{"a schema of schemas", `{"properties":{"form":{"$ref":"https://json-schema.org/draft/2019-09/schema"}}}`,
			`{"properties":{"form":{"type":["object","boolean"],"description":"A JSON Schema (draft 2019-09)."}}}`},
		{"what could refuse too much",
			`{"not":{"properties":{"a":{"$ref":"https://json-schema.org/draft/2019-09/schema"}}},"title":"x"}`,
			`{"title":"x"}`},
		{"counts", `{"minLength":3.0,"maxItems":1e1}`, `{"minLength":3,"maxItems":10}`},
		{"a constant null", `{"const":null}`, `{"enum":[null]}`},
		{"unknown keywords",
			`{"$id":"http://example.com/x","$comment":"secret","x-mine":{"a":1},"writeOnly":true,"type":"string"}`,
			`{"type":"string"}`},
	} {
		p, err := port(c.schema)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if got, err := p.Root.MarshalJSON(); err != nil || string(got) != c.want {
			t.Errorf("%s: got %s, %v; want %s", c.name, got, err, c.want)
		}
	}
}

func TestPortedPartsHaveNames(t *testing.T) {
	p, err := port(`{"$id":"http://example.com/root","properties":{
		"a":{"$ref":"inner"},"b":{"$ref":"#/$defs/address"},"c":{"$ref":"#named"},"d":{"$ref":"#/properties/e/items"},
		"e":{"items":{"type":"string"}},"f":{"$ref":"#/definitions/address"}},
		"$defs":{"x":{"$id":"inner","type":"integer"},"address":{"type":"object"},"unused":{"type":"null"},"y":{"$anchor":"named"}},
		"definitions":{"address":{"type":"array"}}}`)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, part := range p.Parts {
		names = append(names, strings.Trim(strings.TrimPrefix(part.Ref, "#/$defs/"), "!"))
	}
	if got := strings.Join(names, " "); got != "x address y part address2" {
		t.Errorf("parts are called %s", got)
	}
}

func TestPortRefusesWhatCompileRefuses(t *testing.T) {
	for _, text := range []string{`{`, `{"$ref":"other.json"}`,
		`{"$schema":"https://json-schema.org/draft/next/schema"}`} {
		if _, err := port(text); err == nil {
			t.Errorf("%s was taken", text)
		}
	}
}
