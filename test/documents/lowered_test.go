package documents

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"belfry/pkg/api/modeltest"
)

// The document is one of OpenAPI 3.0, whatever a schema has, and has the operations of the other one.
func TestLoweredDocumentIsValid(t *testing.T) {
	schema := filepath.Join(t.TempDir(), "a.json")
	if err := os.WriteFile(schema,
		[]byte(`{"type":"object","required":["me"],"properties":{"me":{"$ref":"#"},"all":{"type":"array","items":{"$ref":"#"}},"n":{"type":["number","null"],"exclusiveMinimum":0},
		"any":{"oneOf":[{"$ref":"#"},{"type":"null"}]}},"dependentRequired":{"n":["all"]},"unevaluatedProperties":false}`), 0o600); err != nil {
		t.Fatal(err)
	}
	text := modeltest.OpenAPI30(t,
		`{authentication: {passkeys: {}, providers: {email: {}}}, binaries: {b: {}}, baseURL: "https://example.org", stores: {A: {schema: "`+schema+`", expose: {list: true}}}}`)
	loader := openapi3.NewLoader()
	doc, err := loader.LoadFromData(text)
	if err != nil {
		t.Fatal(err)
	}
	if err := doc.Validate(loader.Context); err != nil {
		t.Error(err)
	}
	if doc.OpenAPI != "3.0.3" || doc.Paths.Len() < 20 {
		t.Errorf("OpenAPI %s with %d paths", doc.OpenAPI, doc.Paths.Len())
	}
	for _, word := range []string{`"const"`, `"contentSchema"`, `"prefixItems"`, `"null"`, `"unevaluatedProperties"`,
		`"examples"`, `"$defs"`, `"summary": "JSON objects`} {
		if strings.Contains(string(text), word) {
			t.Errorf("the document has %s", word)
		}
	}
}
