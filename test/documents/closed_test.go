package documents

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// closed is the OpenAPI document with belfry's own objects closed, those of stores excepted: a validator then finds
// what replies have and the document has not.
func closed(t *testing.T, text []byte, stores ...string) []byte {
	t.Helper()
	var document map[string]any
	if err := json.Unmarshal(text, &document); err != nil {
		t.Fatal(err)
	}
	for name, s := range document["components"].(map[string]any)["schemas"].(map[string]any) {
		ofStore := slices.ContainsFunc(stores,
			func(store string) bool { return strings.HasPrefix(name, store) && !strings.HasSuffix(name, "Event") })
		if schema := s.(map[string]any); !ofStore && name != "Problem" {
			closeSchema(schema)
		}
	}
	closeReplies(document["paths"])
	text, err := json.Marshal(document)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// closeReplies closes the schemas of the replies below a part of a document.
func closeReplies(v any) {
	switch v := v.(type) {
	case map[string]any:
		for name, inner := range v {
			schema, ok := inner.(map[string]any)
			switch {
			case name == "requestBody":
			case name == "schema" && ok:
				closeSchema(schema)
			default:
				closeReplies(inner)
			}
		}
	case []any:
		for _, inner := range v {
			closeReplies(inner)
		}
	}
}

// closeSchema closes objects whose properties a schema has, and does not close.
func closeSchema(s map[string]any) {
	_, hasAll := s["allOf"]
	properties, has := s["properties"].(map[string]any)
	_, closed := s["additionalProperties"]
	if (has || hasAll) && !closed {
		s["unevaluatedProperties"] = false
	}
	for _, p := range properties {
		if inner, ok := p.(map[string]any); ok {
			closeSchema(inner)
		}
	}
	if items, ok := s["items"].(map[string]any); ok {
		closeSchema(items)
	}
	for _, keyword := range []string{"anyOf", "oneOf"} {
		all, _ := s[keyword].([]any)
		for _, one := range all {
			closeSchema(one.(map[string]any))
		}
	}
}
