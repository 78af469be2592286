package console_test

import (
	"net/http"
	"testing"

	"belfry/pkg/console"
)

func TestTheDocumentOfTheAPIHasRequestsSentToThisOriginAlone(t *testing.T) {
	t.Parallel()
	api, err := console.NewAPI([]byte(`{"openapi":"3.1.0","servers":[{"url":"https://elsewhere.example.org"}],"paths":{"/books":{}}}`))
	if err != nil {
		t.Fatal(err)
	}
	f := start(t, console.Options{API: api})
	is(t, f.get("", "/console/api/openapi.json"), http.StatusSeeOther)
	is(t, f.get(f.User, "/console/api/openapi.json"), http.StatusForbidden)
	var document map[string]any
	is(t, f.get(f.Admin, "/console/api/openapi.json"), http.StatusOK).JSON(&document)
	if _, there := document["servers"]; there || document["paths"] == nil {
		t.Errorf("%v", document)
	}
	leads(t, f.get(f.Admin, "/console"), "/console/api")
	if _, err := console.NewAPI([]byte(`nonsense`)); err == nil {
		t.Error("a document that is no JSON is accepted")
	}
}
