package deploy

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"belfry/test/kit"
	"belfry/test/process"
)

// admins is a browser whose requests a balancer hands to one front after the other.
type admins struct {
	t      *testing.T
	fronts []*process.Server
	cookie string
	n      int
}

func (a *admins) do(method, path string, form url.Values) (status int, location, text string) {
	a.t.Helper()
	front := a.fronts[a.n%len(a.fronts)]
	a.n++
	req, err := http.NewRequestWithContext(a.t.Context(), method, front.URL+path, strings.NewReader(form.Encode()))
	if err != nil {
		a.t.Fatal(err)
	}
	if form != nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	req.Header.Set("Cookie", a.cookie)
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Timeout: kit.Limit}
	res, err := client.Do(req)
	if err != nil {
		a.t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		a.t.Fatal(err)
	}
	for _, c := range res.Cookies() {
		if c.Name == "belfry" {
			a.cookie = c.Name + "=" + c.Value
		}
	}
	return res.StatusCode, res.Header.Get("Location"), string(body)
}

// shows requests a page until it shows a text.
func (a *admins) shows(path, text string) {
	a.t.Helper()
	for range a.fronts {
		process.Eventually(a.t, time.Minute, func() error {
			status, _, body := a.do("GET", path, nil)
			if status != http.StatusOK || !strings.Contains(body, text) {
				return fmt.Errorf("%s: %d, without %q: %s", path, status, text, body)
			}
			return nil
		})
	}
}

var firstLink = regexp.MustCompile(`/console/first\?token=(\S+)`)

// console uses the console behind a balancer that does not keep a browser at one front, with the permissions of a
// front.
func (w *fixture) console(fronts ...*process.Server) {
	w.t.Helper()
	a := &admins{t: w.t, fronts: fronts}
	link := firstLink.FindStringSubmatch(fronts[0].Banner)
	if link == nil {
		w.t.Fatalf("no link for the first admin:\n%s", fronts[0].Banner)
	}
	a.n = 1 // the front that did not make the link
	a.shows(link[0], "Make me the admin")
	if status, to, text := a.do("POST", "/console/first",
		url.Values{"token": {link[1]}, "login": {"ada@example.com"},
			"password": {"a fine password"}}); status != http.StatusSeeOther || to != "/console" {
		w.t.Fatalf("%d %s: %s", status, to, text)
	}
	for path, text := range map[string]string{
		"/console/objects": "Authors", "/console/objects/Books": "notes",
		"/console/objects/Books/object/notes": "Notes", "/console/objects/Books/object/notes/history": "Store.Saved",
		"/console/map": "Books", "/console/live": "Books", "/console/workers": "cascade",
		"/console/workers/mapping": "Reset", "/console/verify": "Verify now",
		"/console/users": "ada@example.com", "/console/system": "The last hour", "/console/api": "API",
	} {
		a.shows(path, text)
	}
	// A run of one front is shown by the other.
	if status, to, text := a.do("POST", "/console/verify", url.Values{"by": {"x"}}); status != http.StatusSeeOther ||
		to != "/console/verify" {
		w.t.Errorf("verify: %d %s: %s", status, to, text)
	}
	a.shows("/console/verify", "no differences")
	// What nats.conf leaves to the admin of the bus is refused at once.
	for _, c := range []struct {
		method, path string
		form         url.Values
		text         string
	}{
		{"GET", "/console/letters", nil, "belfry dlq list"}, {"GET", "/console/letters/1", nil, "belfry dlq show"},
		{"POST", "/console/letters", url.Values{"act": {"retry"}, "id": {"1"}}, "belfry dlq retry"},
		{"POST", "/console/letters", url.Values{"act": {"drop"}, "id": {"1"}}, "belfry dlq drop"},
		{"POST", "/console/workers/mapping/reset", url.Values{"from": {"new"}}, "belfry listener reset"},
	} {
		if status, _, text := a.do(c.method, c.path, c.form); status != http.StatusForbidden ||
			!strings.Contains(text, c.text) || !strings.Contains(text, "user of this process may not") {
			w.t.Errorf("%s %s %v: %d %s", c.method, c.path, c.form, status, text)
		}
	}
}
