package console_test

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"belfry/config"
	"belfry/pkg/account"
	"belfry/pkg/api"
	"belfry/pkg/api/apitest"
	"belfry/pkg/api/console"
	"belfry/pkg/api/console/manual"
	"belfry/pkg/httpkit"
)

// The documentation is for anybody, whatever a request carries: no session is read for it, not even for limits of
// users.
func TestDocsReadNoSession(t *testing.T) {
	t.Parallel()
	f := start(t, withStores(t, "Books"), func(o *api.Options) {
		o.Limits = httpkit.NewLimits(config.RequestLimits{User: config.Rates{Reads: 100}, Loopback: true}, nil,
			prometheus.NewRegistry())
	})
	for _, path := range []string{"/console/docs/", "/console/docs/search?q=backup", "/console/docs/" + aPage(t).URL} {
		for _, headers := range [][]string{nil, {"Authorization", "Bearer wrong"}, {"Cookie", "belfry=wrong"},
			{"Cookie", "belfry=" + f.User}, {"Origin", "https://evil.example.org"}} {
			r := is(t, f.get("", path, headers...), http.StatusOK)
			if r.Header.Get("Set-Cookie") != "" || strings.Contains(strings.Join(r.Header["Vary"], ","), "Cookie") {
				t.Errorf("%s depends on a session: %v", path, r.Header)
			}
			if strings.Contains(r.Text, "bob@example.com") || strings.Contains(r.Text, "Books</a>") {
				t.Errorf("%s shows who is logged in, or a store", path)
			}
		}
	}
	is(t, f.get("", "/console/objects", "Authorization", "Bearer wrong"), http.StatusUnauthorized) // the others do
}

// A reader without a session counts by their address.
func TestDocsAreLimitedByAddress(t *testing.T) {
	t.Parallel()
	f := start(t, withStores(t, "Books"), func(o *api.Options) {
		o.Limits = httpkit.NewLimits(config.RequestLimits{Address: config.Rates{Reads: 1}, Loopback: true}, nil,
			prometheus.NewRegistry())
	})
	for range 100 {
		if r := f.get("", "/console/docs/search?q=backup"); r.StatusCode == http.StatusTooManyRequests {
			shows(t, r, "your network address exceeds", "<title>")
			if r.Header.Get("Retry-After") == "" {
				t.Error("429 without Retry-After")
			}
			return
		}
	}
	t.Error("100 searches of one address were answered")
}

// aPage returns a page that is not the start page.
func aPage(t *testing.T) *manual.Page {
	t.Helper()
	parts := manual.Contents()
	return parts[len(parts)-1].Pages[0]
}

func TestDocsShowPagesAndSearches(t *testing.T) {
	t.Parallel()
	f := start(t, withStores(t, "Books"), func(o *console.Options) { o.Version = "v1.2.3-docs" })
	leads(t, f.get("", "/console/docs"), "/console/docs/")
	page := aPage(t)
	r := is(t, f.get("", "/console/docs/"+page.URL), http.StatusOK)
	shows(t, r, "belfry v1.2.3-docs", `aria-current="page"`, `action="/console/docs/search"`, `rel="prev"`,
		string(page.HTML()[:20]))
	if inline := regexp.MustCompile(`(?i)<script|<style|\sstyle=|\son[a-z]+=`).FindString(r.Text); inline != "" {
		t.Errorf("it has %q, which the policy forbids", inline)
	}
	r.HasHeader("Content-Type", "text/html; charset=utf-8").HasHeader("Cache-Control",
		"public, no-cache").HasHeader("X-Frame-Options", "DENY").HasHeader("Access-Control-Allow-Origin", "")
	if policy := r.Header.Get("Content-Security-Policy"); !strings.HasPrefix(policy,
		"default-src 'none'; style-src 'self'") || strings.Contains(policy, "script-src") {
		t.Errorf("the policy is %s", policy)
	}
	r = is(t, f.get("", "/console/docs/"+page.URL, "Accept-Encoding", "identity"),
		http.StatusOK).HasHeader("Content-Encoding", "")
	tag := r.Header.Get("Etag")
	is(t, f.get("", "/console/docs/"+page.URL, "Accept-Encoding", "identity", "If-None-Match", tag),
		http.StatusNotModified)
	is(t, f.get("", "/console/docs/"+page.URL, "If-None-Match", `"other"`), http.StatusOK)
	packed := is(t, f.get("", "/console/docs/"+page.URL, "Accept-Encoding", "gzip"),
		http.StatusOK).HasHeader("Content-Encoding", "gzip")
	if other := packed.Header.Get("Etag"); other == tag || len(packed.Text) >= len(r.Text) {
		t.Errorf("compressed, the page has the tag %s, and %d of %d bytes", other, len(packed.Text), len(r.Text))
	}

	shows(t, is(t, f.get("", "/console/docs/search?q=back+up+and+restore"), http.StatusOK),
		`value="back up and restore"`, "<mark>", `class="hit"`)
	shows(t, is(t, f.get("", "/console/docs/search?q=xyzzyx"), http.StatusOK), "No page has these words")
	shows(t, is(t, f.get("", "/console/docs/search"), http.StatusOK), "Enter words")
	shows(t, is(t, f.get("", "/console/docs/none"), http.StatusNotFound), "no page none", `href="/console/docs/"`)
	is(t, f.get("", "/console/docs/"+page.URL+"/"), http.StatusNotFound)
	is(t, f.get("", "/console/docs/..%2f..%2fgo.mod"), http.StatusNotFound)
	for _, typed := range []string{`"><script>alert(1)</script>`, "\xff\x00"} {
		for _, path := range []string{"/console/docs/search?q=" + url.QueryEscape(typed),
			"/console/docs/" + url.PathEscape(typed)} {
			if r := f.get("", path); strings.Contains(r.Text, "<script>") {
				t.Errorf("%s is not escaped", path)
			}
		}
	}
	f.send("POST", f.Admin, "/console/docs/", "").Want(http.StatusMethodNotAllowed)
}

func TestDocsBelowAPath(t *testing.T) {
	t.Parallel()
	f := start(t, withStores(t, "Books"), func(o *account.Options) { o.BaseURL = "http://belfry.example.org/api" })
	place := regexp.MustCompile(`\s(?:href|src|action)="(/[^"]*)"`)
	for _, path := range []string{"/console/docs/", "/api/console/docs/" + aPage(t).URL,
		"/api/console/docs/search?q=backup", "/console/docs/none"} {
		found := place.FindAllStringSubmatch(f.get("", path).Text, -1)
		if len(found) < 10 {
			t.Errorf("%s has %d places", path, len(found))
		}
		for _, p := range found {
			if !strings.HasPrefix(p[1], "/api/console") {
				t.Errorf("%s has %s", path, p[0])
			}
		}
	}
	leads(t, f.get("", "/api/console/docs"), "/api/console/docs/")
	r := f.get("", "/api/none")
	r.HasHeader("Link", `</api/console/docs/reference/errors#not-found>; rel="help"`)
}

// Every page of the console leads to the documentation, and to the page about itself.
func TestTheConsoleLinksToTheDocumentation(t *testing.T) {
	t.Parallel()
	f := start(t, withStores(t, "Books"))
	for path, about := range map[string]string{"/console/objects": "objects", "/console/objects/Books": "objects",
		"/console/nothing": ""} {
		shows(t, f.get(f.Admin, path), `href="/console/docs/"`, `href="/console/docs/`+console.Help[about]+`"`)
	}
	shows(t, f.get("", "/console/login"), `href="/console/docs/"`)
}

func TestHelpOfTheConsoleExists(t *testing.T) {
	for topic, target := range console.Help {
		url, anchor, _ := strings.Cut(target, "#")
		if page := manual.Find(url); page == nil || !page.Has(anchor) {
			t.Errorf("the help for %q is %s, which the documentation lacks", topic, target)
		}
	}
}

// A problem leads to its heading where the console is served, and nowhere if it is not. Its type is what it was.
func TestProblemsLinkToTheirHelp(t *testing.T) {
	t.Parallel()
	with := start(t, withStores(t, "Books"))
	r := with.get("", "/none").Want(http.StatusNotFound)
	r.HasHeader("Link", `</console/docs/reference/errors#not-found>; rel="help"`)
	if !strings.Contains(r.Text, `"type":"urn:belfry:problem:not-found"`) {
		t.Errorf("the type has changed: %s", r.Text)
	}
	with.send("POST", "", "/healthz", "{}").Want(http.StatusMethodNotAllowed).HasHeader("Link",
		`</console/docs/reference/errors#method-not-allowed>; rel="help"`)
	with.get("", "/auth/me").HasHeader("Link", `</console/docs/reference/errors#unauthenticated>; rel="help"`)

	without := apitest.StartLogin(t, 1)[0]
	for _, path := range []string{"/none", "/console/docs/", "/console"} {
		without.Do("GET", path, "").Want(http.StatusNotFound).HasHeader("Link", "")
	}
}
