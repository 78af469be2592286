package app

import (
	"net/http"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
)

// TestWhatCanBeExpanded: objects of stores that clients can't get are not shown beside others either, and a key whose
// store is not known is not guessed. The document says what can be expanded, and is that of what is served.
func TestWhatCanBeExpanded(t *testing.T) {
	p := newPlace(t, `
listen: 127.0.0.1:0
bus: {listen: ""}
stores:
  Authors: {expose: {}}
  Inner: {}
  Closed: {expose: {restrict: {get: true}}}
  Left: {expose: {}}
  Right: {expose: {}}
  Books:
    expose: {list: true}
    map:
      Authors: {key: author, target: books, fields: title}
      Inner: {key: inner, target: books, fields: title}
      Closed: {key: closed, target: books, fields: title}
      Left: {key: both, target: books, fields: title}
      Right: {key: both, target: books, fields: title}
`)
	a := p.start()
	for _, name := range []string{"authors", "closed", "left"} {
		p.want(a, "POST", "/"+name, `{"uuid":"x","name":"X"}`, http.StatusCreated)
	}
	if _, err := a.Set().Store("Inner").Save(t.Context(), nil, "x"); err != nil {
		t.Fatal(err)
	}
	p.want(a, "POST", "/books", `{"uuid":"b","author":"x","inner":"x","closed":"x","both":"x"}`, http.StatusCreated)
	for _, path := range []string{"/books", "/books/b"} {
		status, text := p.do(a, "GET", path+"?expand=author&fields=author.name", "")
		if want := `"_expanded":{"author":{"uuid":"x","name":"X"}}}`; status != http.StatusOK ||
			!strings.Contains(text, want) {
			t.Errorf("%s: %d, %s, want %s", path, status, text, want)
		}
		for _, key := range []string{"inner", "closed", "both", "title", "uuid", "author,inner"} {
			if status, text := p.do(a, "GET", path+"?expand="+key, ""); status != http.StatusBadRequest ||
				!strings.Contains(text, "what can be is author") {
				t.Errorf("%s: expand=%s: %d, %s", path, key, status, text)
			}
		}
	}
	_, text := p.do(a, "GET", "/openapi.json", "")
	schemas := []string{"Books", "BooksPartial"}
	for _, schema := range schemas {
		if keys := gjson.Get(text,
			"components.schemas."+schema+".properties._expanded.properties.@keys").String(); keys != `["author"]` {
			t.Errorf("the document has %s in %s", keys, schema)
		}
	}
	if n := strings.Count(text, `"_expanded"`); n != len(schemas) {
		t.Errorf("the document has expansions in %d schemas, not in %d", n, len(schemas))
	}
	if names := gjson.Get(text,
		`paths./books.get.parameters.#(name=="expand").schema.items.enum`).String(); !strings.Contains(names,
		`"author"`) || strings.Contains(names, ",") {
		t.Errorf("by the document one can expand %s", names)
	}
}
