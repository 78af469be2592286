package schema_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/qri-io/jsonschema"

	"belfry/pkg/store/schema"
)

// TestNothingIsFetched refers to remote schemas in every possible way, and sees no
// request. That the library does send one, left alone, shows that the test can
// see them.
func TestNothingIsFetched(t *testing.T) {
	var requests atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		requests.Add(1)
		fmt.Fprint(w, `{"type":"string"}`)
	}))
	defer server.Close()

	for _, text := range []string{
		`{"$ref":"URL/a.json"}`,
		`{"$ref":"URL/a.json#/$defs/a"}`,
		`{"$id":"URL/root.json","$ref":"a.json"}`,
		`{"$id":"URL/root.json","type":"string"}`,
		`{"$id":"URL/root.json","properties":{"a":{"$ref":"#"}}}`,
		`{"$id":"URL/root.json","$anchor":"here","properties":{"a":{"$ref":"root.json#here"}}}`,
		`{"$schema":"URL/schema"}`,
		`{"properties":{"a":{"$id":"URL/inner.json","$ref":"other.json"}}}`,
		`{"$id":"URL/root.json","$recursiveAnchor":true,"properties":{"a":{"$recursiveRef":"#"}}}`,
		`{"$ref":"https://json-schema.org/draft/2019-09/schema"}`,
		`{"$ref":"http://json-schema.org/draft-07/schema#"}`,
		`{"unknown":{"$ref":"URL/a.json"},"enum":[{"$ref":"URL/a.json"}],"default":{"$id":"URL/a.json"}}`,
		`{"$schema":"http://json-schema.org/draft-07/schema#","$id":"URL/root.json","$ref":"#/definitions/a","definitions":{"a":{"$id":"URL/a.json"}}}`,
	} {
		s, err := schema.Compile("remote.json", []byte(strings.ReplaceAll(text, "URL", server.URL)))
		if err != nil {
			continue
		}
		for _, doc := range []string{`{"a":{"a":1}}`, `"a"`, strings.ReplaceAll(text, "URL", server.URL)} {
			if err := s.Validate(t.Context(), []byte(doc)); err != nil && verdict(err) != "false" {
				t.Errorf("%s: %v", text, err)
			}
		}
	}
	if n := requests.Load(); n != 0 {
		t.Errorf("the network saw %d requests", n)
	}

	library := &jsonschema.Schema{}
	if err := json.Unmarshal([]byte(`{"$ref":"`+server.URL+`/a.json"}`), library); err != nil {
		t.Fatal(err)
	}
	if _, err := library.ValidateBytes(t.Context(), []byte(`1`)); err != nil || requests.Load() == 0 {
		t.Errorf("the library itself sent %d requests (%v): this test shows nothing", requests.Load(), err)
	}
}
