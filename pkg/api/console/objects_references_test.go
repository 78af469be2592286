package console_test

import (
	"net/http"
	"strings"
	"testing"

	"belfry/pkg/api/console"
	"belfry/pkg/store"
)

// An object's page leads to what it names, and says what the deletion of that does with it.
func TestAnObjectsPageShowsItsReferences(t *testing.T) {
	t.Parallel()
	l := &library{}
	o := stores(t, []store.Mapping{{Source: "Recipes", Target: "Cooks", Key: "cook"}},
		store.Options{Name: "Cooks", CopiedFrom: []string{"name"}},
		store.Options{Name: "Recipes",
			References: []store.Reference{
				{Field: "cook", Target: "Cooks", Indexed: true, OnDelete: store.OnDeleteRestrict},
				{Field: "taster", Target: "Cooks", OnDelete: store.OnDeleteKeep},
			},
			Copies: []store.Copy{{Field: "chef", Reference: "cook", Source: "Cooks", From: "name"}},
		})
	l.set = o.Set
	l.fixture = start(t, console.Options{Objects: o})
	l.save("Cooks", "ada", `{"name":"Ada"}`)
	l.save("Recipes", "soup", `{"cook":"ada"}`)

	shows(t, is(t, l.get(l.Admin, "/console/objects/Recipes/object/soup"), http.StatusOK),
		"cook: Cooks", `href="/console/objects/Cooks/object/ada"`, "Copied from there: <code>chef</code>.",
		"It can't be deleted while this object names it.", "Ada")
	l.save("Recipes", "stew", `{}`)
	r := is(t, l.get(l.Admin, "/console/objects/Recipes/object/stew"), http.StatusOK)
	if strings.Contains(r.Text, "cook: Cooks") {
		t.Errorf("an object that names nothing: %s", r.Text)
	}
}
