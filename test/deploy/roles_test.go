package deploy

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"belfry/test/backing"
	"belfry/test/kit"
	"belfry/test/kit/natsserver"
	"belfry/test/process"
)

const rolesConfiguration = `
listen: 127.0.0.1:0
backends:
  default: {type: dynamodb, region: eu-central-1, endpoint: %q}
stores:
  Authors: {expose: {}}
  Books:
    expose: {events: true, list: true}
    search: {fields: [title]}
    map: {Authors: {key: author, target: books, fields: title, cascade: true}}
bus:
  url: %s
  user: ${BELFRY_TEST_USER}
  password: ${BELFRY_TEST_PASSWORD}
`

// serveAs starts a process with these roles, as a user of the bus.
func (w *fixture) serveAs(user, roles string) *process.Server {
	w.t.Helper()
	w.t.Setenv("BELFRY_TEST_USER", user)
	w.t.Setenv("BELFRY_TEST_PASSWORD", password(user))
	return process.ServePlain(w.t, w.config, "--role", roles, "--data", filepath.Join(w.t.TempDir(), "data"))
}

// beginning returns the id and the name of the first message of a stream that resumes after
// an id.
func beginning(t *testing.T, s *process.Server, after string) (id, name string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), kit.Limit)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+"/events?lastEventId="+after, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	for lines := bufio.NewScanner(res.Body); lines.Scan(); {
		field, value, _ := strings.Cut(lines.Text(), ": ")
		switch field {
		case "id":
			id = value
		case "event":
			return id, value
		}
	}
	t.Fatalf("%s: the stream does not begin", res.Status)
	return "", ""
}

// A front and workers are separate processes with one configuration, each with
// the permissions of its role: workers apply what the front accepts, also when one
// of them is killed.
func TestRolesInSeparateProcesses(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "belfry-tests")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "a-secret-of-tests")
	w := newFixture(t, "")
	w.bus = natsserver.ServeFile(t, shipped(t)).ClientURL()
	w.config = w.write("roles.yaml", fmt.Sprintf(rolesConfiguration, backing.Dynoxide(t).URL, w.bus))
	t.Setenv("BELFRY_TEST_USER", "admin")
	t.Setenv("BELFRY_TEST_PASSWORD", password("admin"))
	w.run("admin", 0, "consumer mapping of stream EVENTS", "bus", "setup")

	w.belfry = w.serveAs("front", "front")
	w.save("/authors", `{"uuid":"ada"}`)
	w.save("/books", `{"uuid":"notes","author":"ada","title":"Notes"}`)
	w.awaitReady()
	copies := func(want string) {
		t.Helper()
		process.Eventually(t, time.Minute, func() error {
			if author := w.get("/authors/ada"); !strings.Contains(author, want) {
				return fmt.Errorf("%s is not in %s", want, author)
			}
			return nil
		})
	}
	if author := w.get("/authors/ada"); strings.Contains(author, "Notes") {
		t.Errorf("a front maps: %s", author)
	}
	first := w.serveAs("worker", "mapping")
	copies(`"books":[{"uuid":"notes","title":"Notes"}]`)
	first.Kill()
	w.save("/books", `{"uuid":"letters","author":"ada","title":"Letters"}`)
	second := w.serveAs("worker", "mapping,cascade,search")
	copies(`{"uuid":"letters","title":"Letters"}`)
	process.Eventually(t, time.Minute, func() error {
		if found := w.get(
			"/books?q=letters&fields=title"); found != `{"items":[{"uuid":"letters","title":"Letters"}]}` {
			return fmt.Errorf("q finds %s", found)
		}
		return nil
	})
	if res, err := http.Get(second.URL + "/books/letters"); err != nil || res.StatusCode != http.StatusNotFound {
		t.Errorf("a worker serves stores: %v, %v", res, err)
	} else {
		_ = res.Body.Close()
	}

	// An id of one front is known to the other, which has the same key.
	other := w.serveAs("front", "front")
	id, begins := beginning(t, w.belfry, "")
	if _, resumes := beginning(t, other, id); begins != "ready" || resumes != "ready" {
		t.Errorf("a stream begins with %s, and resumes at another front with %s", begins, resumes)
	}
	w.console(w.belfry, other)
	if err := other.Stop(); err != nil {
		t.Error(err)
	}

	req, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, w.belfry.URL+"/authors/ada", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Prefer", "wait=30")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	if res.StatusCode != http.StatusNoContent || res.Header.Get("Preference-Applied") != "wait" {
		t.Errorf("%s, applied %q", res.Status, res.Header.Get("Preference-Applied"))
	}
	if book := w.get("/books/notes"); !strings.Contains(book, `"status":404`) {
		t.Errorf("the book of an author who is deleted: %s", book)
	}
	for _, s := range []*process.Server{w.belfry, second} {
		if log := s.Log(); strings.Contains(log, "ermissions") {
			t.Errorf("a permission is missing:\n%s", log)
		}
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	}
}
