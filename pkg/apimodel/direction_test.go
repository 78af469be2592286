package apimodel_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"belfry/pkg/api/modeltest"
)

// described is what a schema of a document says of properties: which it has, as readOnly (r), writeOnly (w) or both
// ways, and which it requires (!).
func described(t *testing.T, document []byte, name string) string {
	t.Helper()
	var d struct {
		Components struct {
			Schemas map[string]struct {
				Required   []string
				Properties map[string]struct{ ReadOnly, WriteOnly bool }
			}
		}
	}
	if err := json.Unmarshal(document, &d); err != nil {
		t.Fatal(err)
	}
	s, known := d.Components.Schemas[name]
	if !known {
		t.Fatalf("no schema %s", name)
	}
	var all []string
	for name, p := range s.Properties {
		if slices.Contains([]string{"uuid", "created", "updated", "user"}, name) {
			continue
		}
		property := name
		if p.ReadOnly {
			property += ":r"
		}
		if p.WriteOnly {
			property += ":w"
		}
		if slices.Contains(s.Required, name) {
			property += "!"
		}
		all = append(all, property)
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

// What clients may not see is in no output, what they can't set in no input, and what nobody sees is in the input
// alone.
func TestSchemasAreThoseOfTheirDirection(t *testing.T) {
	const store = `stores: {A: {expose: {}, %s owner: user, policy: owner, private: [riddle], readOnly: [role],
		fields: {pin: {read: "false"}, rank: {write: "false"}, mark: {read: "false", write: "false"}, phone: {read: isOwner}, tier: {write: user.role == 'x'}}}}`
	const properties = `"properties":{"name":{"type":"string"},"riddle":{"const":"the-riddle"},"role":{"type":"string"},"pin":{"$ref":"#/$defs/pin"},` +
		`"rank":{"type":"integer"},"mark":{"const":"the-mark"},"phone":{"type":"string"},"tier":{"type":"string"}},"$defs":{"pin":{"type":"string","minLength":4}}`
	required := `,"required":["name","riddle","role","pin","rank","mark","phone","tier"]`
	file := func(rest string) string {
		path := filepath.Join(t.TempDir(), "a.json")
		if err := os.WriteFile(path, []byte(`{`+properties+required+rest+`}`), 0o600); err != nil {
			t.Fatal(err)
		}
		return "schema: " + path + ","
	}
	open := map[string]string{
		"A": "rank:r role:r", "AInput": "pin:w", "AUpdate": "pin:w", "APatch": "pin:w",
	}
	schema := map[string]string{
		"A": "name! phone rank:r! role:r! tier!", "AInput": "name! phone! pin:w! tier!",
		"AUpdate": "name phone pin:w tier", "APatch": "name phone pin:w tier",
	}
	closed := map[string]string{
		"A": schema["A"], "AInput": "name! phone! pin:w! rank:r role:r tier!",
		"AUpdate": "name phone pin:w rank:r role:r tier",
	}
	for of, want := range map[string]map[string]string{"": open, file(""): schema,
		file(`,"additionalProperties":false`): closed} {
		document := modeltest.OpenAPI(t, fmt.Sprintf(store, of))
		for name, properties := range want {
			if got := described(t, document, name); got != properties {
				t.Errorf("%s with %q: %s, want %s", name, of, got, properties)
			}
		}
		for _, word := range []string{"the-riddle", "the-mark", `"riddle"`, `"mark"`} {
			if strings.Contains(string(document), word) {
				t.Errorf("the document for clients has %s", word)
			}
		}
	}
	// Programs on the bus set what rules forbid clients, and see no more than their events have.
	document := modeltest.AsyncAPI(t, fmt.Sprintf(store, file("")))
	for name, want := range map[string]string{"A": schema["A"],
		"AInput": "mark! name! phone! pin:w! rank! role! tier!"} {
		if got := described(t, document, name); got != want {
			t.Errorf("%s of programs: %s, want %s", name, got, want)
		}
	}
	if strings.Contains(string(document), "the-secret") {
		t.Error("the document for programs has a private field")
	}
}

// A uuid that one part of a schema declares is in no reply refused by another part, as it is in no object.
func TestUUIDsThatPartsOfASchemaRefuse(t *testing.T) {
	for text, object := range map[string]string{
		`{"oneOf":[{"properties":{"uuid":{"type":"string"},"k":{"const":"a"}},"required":["k"],"additionalProperties":false},{"properties":{"k":{"const":"b"}},"required":["k"],"additionalProperties":false}]}`: `{"k":"b"}`,
		`{"allOf":[{"$ref":"#/$defs/base"}],"properties":{"uuid":{"type":"string"}},"$defs":{"base":{"properties":{"a":{}},"additionalProperties":false}}}`:                                                      `{"a":1}`,
		`{"properties":{"uuid":{"type":"string"},"a":{}},"propertyNames":{"maxLength":1}}`:                                                                                                                       `{"a":1}`,
		`{"properties":{"uuid":{"type":"string","maxLength":3},"a":{}},"required":["a"],"additionalProperties":false}`:                                                                                           `{"a":1}`,
	} {
		path := filepath.Join(t.TempDir(), "a.json")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		document, err := jsonschema.UnmarshalJSON(
			bytes.NewReader(modeltest.OpenAPI(t, "stores: {A: {expose: {}, schema: "+path+"}}")))
		if err != nil {
			t.Fatal(err)
		}
		c := jsonschema.NewCompiler()
		if err := c.AddResource("urn:it", document); err != nil {
			t.Fatal(err)
		}
		for name, more := range map[string]string{
			"A": `,"uuid":"x","created":"2026-01-02T03:04:05Z","updated":"2026-01-02T03:04:05Z"}`, "AInput": "}",
			"AUpdate": `,"uuid":"x"}`} {
			compiled, err := c.Compile("urn:it#/components/schemas/" + name)
			if err != nil {
				t.Fatal(err)
			}
			body, err := jsonschema.UnmarshalJSON(strings.NewReader(strings.TrimSuffix(object, "}") + more))
			if err != nil {
				t.Fatal(err)
			}
			if err := compiled.Validate(body); err != nil {
				t.Errorf("%s of %s: %v", name, text, err)
			}
		}
	}
}
