package api_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"belfry/config"
	"belfry/pkg/api"
	"belfry/pkg/api/apitest"
	"belfry/pkg/api/pages"
	"belfry/pkg/errs"
	"belfry/pkg/httpkit"
)

const (
	formType   = "application/x-www-form-urlencoded"
	acceptPage = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8" // as browsers send it
	// as java.net.HttpURLConnection sends it
	acceptJava = "text/html, image/gif, image/jpeg, *; q=.2, */*; q=.2"
)

// refusedForm is a form that some part of the server refuses.
type refusedForm struct {
	name, path, body string
	headers          []string
	status           int
	says             string
}

// Whatever refuses a page's form: the browser shows the reply, so it is a page. Programs and scripts get problem
// documents.
func TestWhatRefusesAFormOfAPageIsAPage(t *testing.T) {
	templates, err := pages.Load("")
	if err != nil {
		t.Fatal(err)
	}
	site := pages.Options{Templates: templates, Paths: map[string]string{"login": "/login"},
		Links: pages.Links{Login: "/login"}}
	served := apitest.StartLogin(t, 1, func(o *api.Options) {
		o.Site, o.Hosts = &site, httpkit.NewHosts("http://belfry.example.org")
		o.Limits = httpkit.NewLimits(config.RequestLimits{Address: config.Rates{Reads: 1}, Loopback: true}, nil,
			prometheus.NewRegistry())
	})[0]
	starting := apitest.StartLogin(t, 1, func(o *api.Options) {
		o.Closed = func() error { return errs.New(errs.Unavailable, "belfry is starting") }
	})[0]
	for _, c := range []struct {
		*apitest.Front
		refusedForm
	}{
		{served, refusedForm{"a page of another origin", "/auth/email", "login=a",
			[]string{"Origin", "https://evil.example"}, 403, "set baseURL"}},
		{served, refusedForm{"a page without an origin", "/auth/logout", "", []string{"Origin", "null"}, 403,
			"another origin"}},
		{served, refusedForm{"no route", "/auth/nothing", "login=a", nil, 404, "Nothing is exposed"}},
		{served, refusedForm{"no method", "/login", "login=a", nil, 405, "This path takes"}},
		{starting, refusedForm{"a start", "/auth/email", "login=a", nil, 503, "Belfry is starting."}},
	} {
		send := func(more ...string) apitest.Reply {
			return c.Do("POST", c.path, c.body,
				append(append([]string{"Content-Type", "", "Content-Type", formType}, c.headers...), more...)...)
		}
		r := send("Accept", acceptPage)
		r.HasHeader("Content-Type", "text/html; charset=utf-8").HasHeader("Cache-Control",
			"no-store").HasHeader("Referrer-Policy", "same-origin").HasHeader("X-Frame-Options", "DENY")
		if r.StatusCode != c.status {
			t.Errorf("%s: status %d, want %d", c.name, r.StatusCode, c.status)
		}
		if !strings.Contains(r.Text, c.says) || !strings.Contains(r.Text, `<p class="lead" role="alert">`) ||
			strings.Contains(r.Text, "Logged in as") {
			t.Errorf("%s: %s", c.name, r.Text)
		}
		for _, program := range [][]string{nil, {"Accept", "*/*"}, {"Accept", "application/json"},
			{"Accept", acceptJava}, {"Accept", acceptPage, "Hx-Request", "true"}} {
			if p := send(program...).Want(c.status).Problem(); p.Status != c.status {
				t.Errorf("%s, of a program: %+v", c.name, p)
			}
		}
		if c.name != "no method" {
			c.Do("POST", c.path, "{}",
				append([]string{"Accept", acceptPage}, c.headers...)...).HasHeader("Content-Type",
				"application/problem+json")
		}
	}

	// So is what links of pages lead to; what else a browser asks for is what a program gets.
	limited := func(accept string) apitest.Reply {
		r := served.Do("GET", "/login", "", "Accept", accept)
		for n := 0; r.StatusCode == http.StatusOK && n < 10_000; n++ { // a token a second comes meanwhile
			r = served.Do("GET", "/login", "", "Accept", accept)
		}
		return r
	}
	if r := limited(acceptPage).HasHeader("Content-Type",
		"text/html; charset=utf-8"); r.StatusCode != http.StatusTooManyRequests || r.Header.Get("Retry-After") == "" {
		t.Errorf("%d %v", r.StatusCode, r.Header)
	}
	limited("*/*").Want(429).HasHeader("Content-Type", "application/problem+json")
	served.Do("GET", "/books/none", "", "Accept", acceptPage).HasHeader("Content-Type", "application/problem+json")
}

// A form that names another host is refused with a page, too. What it shows comes from the request.
func TestTheTextOfARefusalIsEscaped(t *testing.T) {
	f := apitest.StartLogin(t, 1, func(o *api.Options) { o.Hosts = httpkit.NewHosts("http://belfry.example.org") })[0]
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, f.URL+"/auth/email", strings.NewReader("a=b"))
	f.Must(err)
	r.Host = `evil'&x.example`
	r.Header.Set("Content-Type", formType)
	r.Header.Set("Accept", acceptPage)
	res, err := f.Server.Client().Do(r)
	f.Must(err)
	page := f.Read(res).HasHeader("Content-Type", "text/html; charset=utf-8")
	if page.StatusCode != http.StatusMisdirectedRequest ||
		!strings.Contains(page.Text, "does not name the host evil&#39;&amp;x.example") {
		t.Error(page.StatusCode, page.Text)
	}
}
