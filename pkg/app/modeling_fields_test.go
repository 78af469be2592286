package app

import (
	"net/http"
	"strings"
	"testing"
)

// A form that changes a field leaves the rest of the schema as it was written.
func TestAFieldOfASchemaChangesAlone(t *testing.T) {
	e := newEditing(t, "development: true\nlisten: 127.0.0.1:0\nbus: {listen: \"\"}\n"+
		"authentication: {providers: {email: {}}}\nmailers: {default: {type: file}}\n")
	r := e.read()
	r.open("/console/configuration/new-store", http.StatusOK).
		apply("/name", "Recipes", "/fields/0/name", "title", "/access", "everyone")
	const pattern = "^[^<>&]+$"
	r.open("/console/configuration/stores/Recipes/field?name=title", http.StatusOK).apply("/pattern", pattern)
	r.open("/console/configuration/stores/Recipes/field", http.StatusOK).apply("/name", "text")
	if schema := e.file("schemas/Recipes.json"); !strings.Contains(schema, pattern) {
		t.Error(schema)
	}
}

// A form makes no field that clients can't set, or that the rest of the configuration can't name.
func TestNamesOfFieldsInForms(t *testing.T) {
	e := newEditing(t, "development: true\nlisten: 127.0.0.1:0\nbus: {listen: \"\"}\n"+
		"authentication: {providers: {email: {}}}\nmailers: {default: {type: file}}\n")
	r := e.read()
	for _, name := range []string{"_x", "a.b", "a[]", "-a", "$a", " ", "title ", "a\nb", "\u202egpj", "${HOME}", "uuid",
		"created", "<img src=x>", strings.Repeat("x", 101)} {
		p := r.open("/console/configuration/new-store", http.StatusOK).
			fill(http.StatusUnprocessableEntity, "/name", "Recipes", "/fields/0/name", name)
		if !strings.Contains(p.text, "expected") || !strings.Contains(p.text, `name="/fields/0/name"`) ||
			!strings.Contains(p.text, "aria-invalid") {
			t.Errorf("%q: %s", name, p.words())
		}
	}
	r.open("/console/configuration/new-store", http.StatusOK).
		apply("/name", "Recipes", "/fields/0/name", "größe_1")
	before := e.file("schemas/Recipes.json")
	for _, name := range []string{"_x", "a.b", "updated"} {
		p := r.open("/console/configuration/stores/Recipes/field", http.StatusOK).
			fill(http.StatusUnprocessableEntity, "/name", name)
		if !strings.Contains(p.text, "aria-invalid") || e.file("schemas/Recipes.json") != before {
			t.Errorf("%q: %s", name, p.words())
		}
	}
}
