package form_test

import (
	"testing"

	"belfry/config"
	"belfry/internal/ordered"
	"belfry/pkg/api/console/form"
)

// TestAStoreOfTheConfigurationHasAForm: the schema of configurations has maps by name, and alternatives.
func TestAStoreOfTheConfigurationHasAForm(t *testing.T) {
	t.Parallel()
	v, err := ordered.Value(config.Schema())
	if err != nil {
		t.Fatal(err)
	}
	store, err := v.(*ordered.Object).Object("properties").Object("stores").Object("additionalProperties").Encode()
	if err != nil {
		t.Fatal(err)
	}
	s := schemaOf(t, string(store), form.Options{})
	base := `{"expose":{"list":true,"url":"/books"},"indexes":["title"],"schema":"book.json",` +
		`"map":{"Authors":{"key":"author","target":"books","fields":["title"]}}}`
	f, text, problems := edit(t, s, base, "/expose/list", "", "name:/map/~r0", "People", "add", "/indexes")
	if want := `{"expose":{"url":"/books"},"indexes":["title"],"schema":"book.json",` +
		`"map":{"People":{"key":"author","target":"books","fields":["title"]}}}`; text != want || len(problems) > 0 {
		t.Errorf("%s, %v", text, problems)
	}
	for name, kind := range map[string]form.Kind{"/expose": form.Group, "/map": form.Group, "/indexes": form.List,
		"/map/~r0/fields": form.List, "/expose/list": form.Choice} {
		if is := field(t, f, name); is.Kind != kind {
			t.Errorf("%s is %s", name, is.Kind)
		}
	}
}
