package console_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"belfry/pkg/account/admin"
	"belfry/pkg/object"
)

// Controls of the direction of text, and others that nobody sees: one text can be read as another.
const (
	turned = "photo\u202egnp.exe\u2066\u0085\ufeff"
	shown  = `photo\u202egnp.exe\u2066\u0085\ufeff`
)

func TestHiddenCharactersAreShown(t *testing.T) {
	t.Parallel()
	l := startLibrary(t)
	l.save("Books", "turned", `{"title":"`+turned+`","`+turned+`":1}`)
	for _, path := range []string{"/console/objects/Books", "/console/objects/Books/object/turned"} {
		r := is(t, l.get(l.Admin, path), http.StatusOK)
		if shows(t, r, shown); strings.ContainsAny(r.Text, "\u202e\u2066") {
			t.Errorf("%s has the characters themselves", path)
		}
	}
	// What is shown is the same value.
	l.save("Books", "edited", `{"title":"`+turned+`"}`)
	const edited = "/console/objects/Books/object/edited"
	revision := regexp.MustCompile(`name="revision" value="(\d+)"`).FindStringSubmatch(is(t, l.get(l.Admin, edited),
		http.StatusOK).Text)[1]
	leads(t, l.post(l.Admin, edited, form("revision", revision, "text", `{"title":"`+shown+`","more":1}`)), edited)
	if title, _ := object.Text(object.Field(l.read("Books", "edited").Body, "title")); title != turned {
		t.Errorf("the title is %q", title)
	}
}

func TestHiddenCharactersInNamesOfUsersAreShown(t *testing.T) {
	t.Parallel()
	f := startUsers(t)
	user, err := f.Auth.Admin.CreateUser(t.Context(), admin.NewUser{Machine: true,
		Fields: object.Object{"name": object.AppendString(nil, turned+strings.Repeat("x", 100_000))}})
	f.Must(err)
	for _, path := range []string{"/console/users", "/console/users/" + user.UUID} {
		r := is(t, f.get(f.Admin, path), http.StatusOK)
		if shows(t, r, shown); strings.ContainsAny(r.Text, "\u202e\u2066") {
			t.Errorf("%s has the characters themselves", path)
		}
		if path == "/console/users" && len(r.Text) > 20_000 {
			t.Errorf("a name fills the list: %d bytes", len(r.Text))
		}
	}
}

func TestLongNamesOfFieldsFillNoList(t *testing.T) {
	t.Parallel()
	l := startLibrary(t)
	l.save("Books", "long", `{"title":"`+strings.Repeat("v", 100_000)+`","`+strings.Repeat("k", 100_000)+`":1,"b":2}`)
	if r := is(t, l.get(l.Admin, "/console/objects/Books"), http.StatusOK); len(r.Text) > 20_000 {
		t.Errorf("a list of one object has %d bytes", len(r.Text))
	}
}
