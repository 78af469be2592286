package search

import (
	"encoding/json"
	"strings"

	"belfry/pkg/object"
)

// documentOf returns the texts of an object as an index has them, and how many bytes they have. The text of a field is
// that of a string, or those of the elements of an array; that of a field one level down, of the object in the field,
// or of those in an array.
func documentOf(fields []string, body []byte) (map[string]any, int) {
	document, size := map[string]any{}, 0
	for i, field := range fields {
		top, inner, nested := strings.Cut(field, ".")
		var texts []any
		for _, value := range elements(object.Field(body, top)) {
			if nested {
				var parent map[string]json.RawMessage
				if json.Unmarshal(value, &parent) != nil {
					continue // no object
				}
				for _, value := range elements(parent[inner]) {
					texts = appendText(texts, value)
				}
				continue
			}
			texts = appendText(texts, value)
		}
		for _, text := range texts {
			size += len(text.(string))
		}
		if texts != nil {
			document[fieldName(i)] = texts
		}
	}
	return document, size
}

// elements returns those of an array, or the value itself.
func elements(value json.RawMessage) []json.RawMessage {
	var all []json.RawMessage
	if len(value) == 0 {
		return nil
	}
	if value[0] == '[' && json.Unmarshal(value, &all) == nil {
		return all
	}
	return []json.RawMessage{value}
}

func appendText(texts []any, value json.RawMessage) []any {
	if text, ok := object.Text(value); ok && text != "" {
		return append(texts, text)
	}
	return texts
}
