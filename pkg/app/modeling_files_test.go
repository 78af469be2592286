package app

import (
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	"belfry/config"
	"belfry/pkg/errs"
)

// An admin names the fields of a store that hold files. Where the files are is not changed in the console, and neither
// are files of belfry's own stores.
func TestAnAdminNamesFieldsWithFiles(t *testing.T) {
	e := newEditing(t, edited+"binaries: {pictures: {map: {}, maxSize: 5MiB}}\n")
	r := e.read()
	review := r.open("/console/configuration/stores/Recipes/files", http.StatusOK).
		fill(http.StatusOK, "add", "/pictures").fill(http.StatusOK, "/pictures/0/field", "photos")
	if !strings.Contains(review.words(), "pictures accepted files in any field so far") {
		t.Error(review.words())
	}
	review.fill(http.StatusOK, "step", "apply")
	if got := e.a.now().Config.Binaries["pictures"].Map["Recipes"]; !slices.Equal(got.Names, []string{"photos"}) {
		t.Errorf("%v\n%s", got, e.file("belfry.yaml"))
	}
	form := func() *page { return r.open("/console/configuration/stores/Recipes/files", http.StatusOK) }
	form().fill(http.StatusOK, "/pictures/0/maxSize", "1MiB", "/pictures/0/types", "image/*").
		fill(http.StatusOK, "step", "apply")
	want := config.FileProperty{MaxSize: 1 << 20, Types: []string{"image/*"}}
	if got := e.a.now().Config.Binaries["pictures"].Map["Recipes"].Each; !reflect.DeepEqual(got["photos"], want) {
		t.Errorf("%v\n%s", got, e.file("belfry.yaml"))
	}
	if large := form().fill(http.StatusUnprocessableEntity, "/pictures/0/maxSize", "6MiB"); !strings.Contains(large.text,
		"at most maxSize of the service, 5MiB") {
		t.Error(large.words())
	}
	twice := form().fill(http.StatusOK, "add", "/pictures").
		fill(http.StatusUnprocessableEntity, "/pictures/1/field", "photos")
	if !strings.Contains(twice.words(), "photos is there twice") {
		t.Error(twice.words())
	}
	wrong := form().fill(http.StatusOK, "add", "/pictures").
		fill(http.StatusUnprocessableEntity, "/pictures/1/field", "uuid")
	if !strings.Contains(wrong.text, "aria-invalid") {
		t.Error(wrong.words())
	}
	before := e.files()
	for key, want := range map[string]errs.Kind{
		"binaries/pictures/maxSize":      errs.Denied,
		"binaries/pictures/expose/url":   errs.Denied,
		"binaries/pictures/map":          errs.Invalid,
		"binaries/other/map/Recipes":     errs.Denied,
		"binaries/pictures/map/Sessions": errs.Denied,
		"binaries/pictures/map/Idents":   errs.Denied,
	} {
		_, err := e.editor().Apply(e.Context(), e.set(key, `["x"]`), e.by)
		if errs.KindOf(err) != want {
			t.Errorf("%s: %v, want %v", key, err, want)
		}
	}
	if now := e.files(); !mapsEqual(now, before) {
		t.Errorf("the files have changed: %v", now)
	}

	without := newEditing(t, edited).read()
	refused := without.open("/console/configuration/stores/Recipes/files", http.StatusConflict).words()
	if !strings.Contains(refused, "no service keeps files here") {
		t.Error(refused)
	}
}
