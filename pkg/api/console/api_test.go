package console_test

import (
	"net/http"
	"testing"

	"belfry/pkg/api/console"
)

func TestTheDocumentOfTheAPIHasRequestsSentToThisOriginAlone(t *testing.T) {
	t.Parallel()
	text := func(s string) func() ([]byte, error) { return func() ([]byte, error) { return []byte(s), nil } }
	f := start(t,
		console.Options{API: console.NewAPI(
			text(`{"openapi":"3.1.0","servers":[{"url":"https://elsewhere.example.org"}],"paths":{"/books":{}}}`))})
	is(t, f.get("", "/console/api/openapi.json"), http.StatusSeeOther)
	is(t, f.get(f.User, "/console/api/openapi.json"), http.StatusForbidden)
	var document map[string]any
	is(t, f.get(f.Admin, "/console/api/openapi.json"), http.StatusOK).JSON(&document)
	if _, there := document["servers"]; there || document["paths"] == nil {
		t.Errorf("%v", document)
	}
	leads(t, f.get(f.Admin, "/console"), "/console/api")
	f = start(t, console.Options{API: console.NewAPI(text(`nonsense`))})
	is(t, f.get(f.Admin, "/console/api/openapi.json"), http.StatusInternalServerError)
}
