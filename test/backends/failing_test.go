package backends

import (
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"belfry/test/backing"
	"belfry/test/kit"
	"belfry/test/process"
)

// unavailable requires that a request is refused for now.
func unavailable(t *testing.T, s *process.Server, method, path, body string) {
	t.Helper()
	r, err := ask(s, method, path, body)
	if err != nil {
		t.Fatal(err)
	}
	if r.status != http.StatusServiceUnavailable || r.header.Get("Retry-After") == "" {
		t.Errorf("%s %s: status %d, Retry-After %q, want 503: %s", method, path, r.status, r.header.Get("Retry-After"),
			r.body)
	}
}

// The server accepts connections and answers, but what it is built on is stopped: it replies to each
// command that it failed.
func TestBelfryWaitsForAServerThatAnswersThatItFails(t *testing.T) {
	t.Parallel()
	postgres := backing.StartPostgres(t)
	server := backing.MongoOnPostgres(t, postgres)
	postgres.Stop()
	folder := t.TempDir()
	config := write(t, folder, "belfry.yaml", fmt.Sprintf(`data: %s
bus: {listen: ""}
backends: {default: {type: mongodb, url: '%s?serverSelectionTimeoutMS=2000&timeoutMS=10000'}}
stores: {Books: {expose: {}}}
`, filepath.Join(folder, "data"), server.URL))
	address := net.JoinHostPort("127.0.0.1", fmt.Sprint(kit.FreePort(t)))
	wait := process.ServeLater(t, config, "--listen", address)
	early := &process.Server{URL: "http://" + address}
	process.Eventually(t, patience, func() error {
		r, err := ask(early, "GET", "/readyz", "")
		if err == nil && (r.status != http.StatusServiceUnavailable ||
			!strings.Contains(string(r.body), "waits for backend default")) {
			err = fmt.Errorf("/readyz: %d %s", r.status, r.body)
		}
		return err
	})
	postgres.Restart(t)
	s := wait()
	if log := s.Log(); !strings.Contains(log, "a backend is unavailable; retrying") ||
		!strings.Contains(log, server.Address) {
		t.Errorf("the log does not say what belfry waits for:\n%s", log)
	}
	must(t, s, 201, "POST", "/books", `{"uuid":"one","title":"One"}`)
	postgres.Stop()
	unavailable(t, s, "GET", "/books/one", "")
	unavailable(t, s, "PUT", "/books/one", `{"title":"Two"}`)
	unavailable(t, s, "POST", "/books", `{"uuid":"two"}`)
	unavailable(t, s, "GET", "/readyz", "")
	postgres.Restart(t)
	process.Eventually(t, patience, func() error {
		r, err := ask(s, "PUT", "/books/one", `{"title":"Three"}`)
		if err == nil && r.status != http.StatusOK {
			err = fmt.Errorf("status %d: %s", r.status, r.body)
		}
		return err
	})
	eventually(t, s, "/books/one", "title", "Three")
}

// Belfry doesn't wait for what does not change by itself.
func TestBelfryDoesNotStartWithAWrongPassword(t *testing.T) {
	t.Parallel()
	server := servers.mongo()
	folder := t.TempDir()
	config := write(t, folder, "belfry.yaml", fmt.Sprintf(`data: %s
bus: {listen: ""}
backends: {default: {type: mongodb, url: 'mongodb://someone:5ecret@%s/?authMechanism=SCRAM-SHA-256'}}
stores: {Books: {expose: {}}}
`, filepath.Join(folder, "data"), server.Address))
	_, stderr, exit, err := process.Run(process.Commands(t), "serve", "--config", config, "--listen", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if exit != 1 || !strings.Contains(stderr, "refuses the user or the password in the backend's URL") ||
		strings.Contains(stderr, "5ecret") {
		t.Errorf("exit code %d: %s", exit, stderr)
	}
}
