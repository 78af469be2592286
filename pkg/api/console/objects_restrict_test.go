package console_test

import (
	"fmt"
	"net/http"
	"testing"

	"belfry/pkg/api/console"
	"belfry/pkg/store"
)

// Before a deletion the console lists what it clears and what refuses it, the first of many.
func TestADeletionListsTheReferencesToItsObject(t *testing.T) {
	t.Parallel()
	o := stores(t, []store.Mapping{{Source: "Recipes", Target: "Cooks", Key: "cook"},
		{Source: "Menus", Target: "Cooks", Key: "guests"}},
		store.Options{Name: "Cooks"},
		store.Options{Name: "Recipes", References: []store.Reference{
			{Field: "cook", Target: "Cooks", Indexed: true, OnDelete: store.OnDeleteRestrict}}},
		store.Options{Name: "Menus", References: []store.Reference{
			{Field: "guests", Target: "Cooks", Indexed: true, OnDelete: store.OnDeleteClear}}})
	l := &library{set: o.Set, fixture: start(t, console.Options{Objects: o})}
	l.save("Cooks", "ada", `{"name":"Ada"}`)
	const at = "/console/objects/Cooks/object/ada/delete"
	r := is(t, l.get(l.Admin, at), http.StatusOK)
	lacks(t, r, "will be cleared", "can&#39;t be deleted", "can't be deleted")
	shows(t, r, `class="danger">Delete<`)

	for i := range 130 {
		l.save("Menus", fmt.Sprintf("m%03d", i), `{"guests":["ada","bob"]}`)
	}
	r = is(t, l.get(l.Admin, at), http.StatusOK)
	shows(t, r, "<code>guests</code> of at least 100 objects of Menus will be cleared.",
		"Menus by <code>guests</code>: at least 100", `href="/console/objects/Menus/object/m019"`, "and 80 more",
		`class="danger">Delete<`)
	lacks(t, r, "m020")

	l.save("Recipes", "soup", `{"cook":"ada"}`)
	r = is(t, l.get(l.Admin, at), http.StatusOK)
	shows(t, r, "while other objects name it.", "Recipes by <code>cook</code>: 1",
		`href="/console/objects/Recipes/object/soup"`)
	lacks(t, r, `class="danger">Delete<`)
	l.Must(l.set.Store("Recipes").Delete(t.Context(), "soup", 0))
	shows(t, is(t, l.get(l.Admin, at), http.StatusOK), `class="danger">Delete<`)
}
