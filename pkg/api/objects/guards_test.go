package objects_test

import (
	"strings"
	"testing"

	"belfry/config"
	"belfry/pkg/api"
	"belfry/pkg/api/apitest"
	"belfry/pkg/object"
	"belfry/pkg/store"
	"belfry/pkg/store/filestore"
	"belfry/pkg/store/policy"
)

// startNotes starts a Front with a store Notes under rules, at /notes.
func startNotes(t *testing.T, rules policy.Rules) (*apitest.Front, *store.Store) {
	t.Helper()
	compiled, problems := policy.Compile(rules)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	backend, err := filestore.Open(t.TempDir(), filestore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = backend.Close() })
	notes, err := store.Open(t.Context(), backend, store.Options{
		Name: "Notes", Policy: compiled, Private: []string{"secret"}, ReadOnly: []string{"owner"},
	})
	if err != nil {
		t.Fatal(err)
	}
	store.NewSet([]*store.Store{notes}, nil)
	f := apitest.Start(t, func(o *api.Options) {
		apitest.Expose(o, notes, config.Expose{URL: "/notes", List: true})
	})
	return f, notes
}

// save writes an object as the server itself, which no rule for clients applies to.
func save(f *apitest.Front, s *store.Store, uuid, body string) store.Stored {
	f.Helper()
	o, err := object.Parse([]byte(body))
	f.Must(err)
	stored, err := s.Save(f.Context(), o, uuid)
	f.Must(err)
	return stored
}

func TestHiddenFieldsAreInNoReply(t *testing.T) {
	t.Parallel()
	f, notes := startNotes(t, policy.Rules{})
	save(f, notes, "n", `{"text":"shown","secret":"hidden-value","_internal":"hidden-value"}`)
	etag := f.Do("GET", "/notes/n", "").Want(200).Header.Get("Etag")
	for _, request := range []struct {
		method, path, body string
		headers            []string
	}{
		{"GET", "/notes", "", nil},
		{"GET", "/notes?limit=1", "", nil},
		{"GET", "/notes/n", "", nil},
		{"PUT", "/notes/n", `{"text":"shown"}`, []string{"If-Match", etag}},
		{"PATCH", "/notes/n", `{"text":"shown"}`, nil},
	} {
		r := f.Do(request.method, request.path, request.body, request.headers...).Want(200)
		if !strings.Contains(r.Text, "shown") {
			t.Errorf("%s %s does not reply with the object: %s", request.method, request.path, r.Text)
		}
		for _, hidden := range []string{"secret", "_internal", "hidden-value"} {
			if strings.Contains(r.Text, hidden) {
				t.Errorf("%s %s replies with %s: %s", request.method, request.path, hidden, r.Text)
			}
		}
	}
}

func TestUpdateIsDeniedByPolicy(t *testing.T) {
	t.Parallel()
	f, notes := startNotes(t, policy.Rules{Update: `!has(object.locked)`})
	before := save(f, notes, "n", `{"text":"old","locked":true}`)
	save(f, notes, "open", `{"text":"old"}`)
	f.Do("PUT", "/notes/n", `{"text":"new"}`).Want(401)
	f.Do("PATCH", "/notes/n", `{"text":"new"}`).Want(401)
	f.Do("PATCH", "/notes/n", `{"locked":null}`).Want(401)
	// No precondition is judged before the policy.
	f.Do("PATCH", "/notes/n", `{"text":"new"}`, "If-None-Match", "*").Want(401)
	if now, err := notes.Get(t.Context(), "n"); err != nil || now.Revision != before.Revision {
		t.Errorf("a denied update has changed the object: %+v, %v", now, err)
	}
	f.Do("PATCH", "/notes/open", `{"text":"new"}`).Want(200)
}

func TestDeleteIsDeniedByPolicy(t *testing.T) {
	t.Parallel()
	f, notes := startNotes(t, policy.Rules{Delete: `!has(object.locked)`})
	save(f, notes, "n", `{"locked":true}`)
	save(f, notes, "open", `{}`)
	f.Do("DELETE", "/notes/n", "").Want(401)
	f.Do("DELETE", "/notes/n", "", "If-None-Match", "*").Want(401)
	f.Do("GET", "/notes/n", "").Want(200)
	f.Do("DELETE", "/notes/open", "").Want(204)
	f.Do("GET", "/notes/open", "").Want(404)
}

func TestListLeavesOutWhatPolicyDenies(t *testing.T) {
	t.Parallel()
	f, notes := startNotes(t, policy.Rules{List: `has(object.public)`})
	save(f, notes, "a", `{"text":"denied-text"}`)
	save(f, notes, "b", `{"text":"allowed-text","public":true}`)
	for _, path := range []string{"/notes", "/notes?limit=10"} {
		r := f.Do("GET", path, "").Want(200)
		if strings.Contains(r.Text, "denied-text") || !strings.Contains(r.Text, "allowed-text") {
			t.Errorf("GET %s: %s", path, r.Text)
		}
	}
}

func TestListIsDeniedByPolicy(t *testing.T) {
	t.Parallel()
	f, notes := startNotes(t, policy.Rules{List: `user != null`})
	save(f, notes, "a", `{}`)
	f.Do("GET", "/notes", "").Want(401)
	f.Do("GET", "/notes/a", "").Want(200)
}

func TestReadOnlyFieldsAreNotTakenFromClients(t *testing.T) {
	t.Parallel()
	f, notes := startNotes(t, policy.Rules{})
	save(f, notes, "n", `{"owner":"ada"}`)
	f.Do("PATCH", "/notes/n", `{"owner":"mallory","text":"x"}`)
	r := f.Do("GET", "/notes/n", "").Want(200)
	if !strings.Contains(r.Text, `"owner":"ada"`) {
		t.Errorf("a client has set a read-only field: %s", r.Text)
	}
}
