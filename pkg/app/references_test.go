package app

import (
	"net/http"
	"strings"
	"testing"

	"belfry/test/kit"
)

// TestReferences is about a whole belfry: what a deletion does with the objects that name the deleted one, in stores
// that clients may get and in others, by single requests, in batches and with a key; and after a reload.
func TestReferences(t *testing.T) {
	const stores = `
listen: 127.0.0.1:0
bus: {listen: ""}
stores:
  Recipes: {expose: {}}
  Comments: {expose: {list: true}, references: {recipe: {store: Recipes, required: true, onDelete: ACTION}}}
  Notes: {expose: {}, references: {recipes: {store: Recipes, onDelete: clear}}}
  Likes: {expose: {}, references: {recipe: {store: Recipes, onDelete: cascade}}}
`
	p := newPlace(t, strings.ReplaceAll(stores, "ACTION", "restrict"))
	a := p.start()
	for _, uuid := range []string{"a", "b"} {
		p.want(a, "POST", "/recipes", `{"uuid":"`+uuid+`"}`, http.StatusCreated)
	}
	p.want(a, "POST", "/comments", `{"uuid":"c","recipe":"a"}`, http.StatusCreated)
	p.want(a, "POST", "/comments", `{"recipe":"none"}`, http.StatusBadRequest)
	p.want(a, "POST", "/notes", `{"uuid":"n","recipes":["b","a"]}`, http.StatusCreated)
	p.want(a, "POST", "/likes", `{"uuid":"l","recipe":"a"}`, http.StatusCreated)
	if status, text := p.do(a, "DELETE", "/recipes/a", ""); status != http.StatusConflict ||
		!strings.Contains(text, "1 object of Comments names it") {
		t.Errorf("%d, %s", status, text)
	}
	if status, text := p.do(a, "GET", "/comments/c?expand=recipe", ""); status != http.StatusOK ||
		!strings.Contains(text, `"_expanded":{"recipe":{"uuid":"a"`) {
		t.Errorf("%d, %s", status, text)
	}
	p.want(a, "POST", "/batch", `{"operations":[{"method":"DELETE","path":"/comments/c"},
		{"method":"DELETE","path":"/recipes/a"}]}`, http.StatusOK)
	kit.WaitFor(t, "the like is deleted and the note cleared", func() bool {
		status, _ := p.do(a, "GET", "/likes/l", "")
		_, note := p.do(a, "GET", "/notes/n", "")
		return status == http.StatusNotFound && strings.Contains(note, `"recipes":["b"]`)
	})
	p.want(a, "GET", "/recipes/a", "", http.StatusNotFound)
}
