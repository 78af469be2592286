package login

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"slices"
	"strings"
	"sync"
)

// browser follows redirects and has cookies.
type browser struct {
	*world
	http.Client
	header http.Header // that it sends to belfry
}

func (w *world) browser() *browser {
	w.Helper()
	jar, err := cookiejar.New(nil)
	w.must(err)
	b := &browser{world: w, header: http.Header{}}
	b.Client = http.Client{Jar: jar, Transport: b, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return b
}

// RoundTrip notes what belfry is told and tells.
func (b *browser) RoundTrip(req *http.Request) (*http.Response, error) {
	toBelfry := strings.HasPrefix(req.URL.String(), b.url+"/")
	if toBelfry {
		req = req.Clone(req.Context())
		for name, values := range b.header {
			req.Header[name] = values
		}
	}
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil || !toBelfry {
		return res, err
	}
	body, err := io.ReadAll(res.Body)
	_ = res.Body.Close()
	res.Body = io.NopCloser(bytes.NewReader(body))
	b.secrets.received(res, body)
	return res, err
}

// ask makes one request to belfry.
func (b *browser) ask(method, path, body string) (*http.Response, []byte) {
	b.Helper()
	req, err := http.NewRequestWithContext(b.Context(), method, b.url+path, strings.NewReader(body))
	b.must(err)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	return b.send(req)
}

func (b *browser) send(req *http.Request) (*http.Response, []byte) {
	b.Helper()
	res, err := b.Do(req)
	b.must(err)
	defer func() { _ = res.Body.Close() }()
	data, err := io.ReadAll(res.Body)
	b.must(err)
	return res, data
}

// walk goes to a URL and on, wherever it is sent, until it is sent to one that
// ends the journey. It returns that one, without going there.
func (b *browser) walk(from string, ends func(*url.URL) bool) *url.URL {
	b.Helper()
	for range 10 {
		req, err := http.NewRequestWithContext(b.Context(), http.MethodGet, from, http.NoBody)
		b.must(err)
		res, body := b.send(req)
		to, err := res.Location()
		if err != nil {
			b.Fatalf("GET %s leads nowhere: %s %s", from, res.Status, body)
		}
		if ends(to) {
			return to
		}
		from = to.String()
	}
	b.Fatal("redirects without end")
	return nil
}

// leave begins a visit to a provider and returns the callback that the
// provider sends the browser to.
func (b *browser) leave(name string) *url.URL {
	b.Helper()
	return b.walk(b.url+"/auth/"+name, func(to *url.URL) bool { return to.Path == "/auth/callback" || landed(to) })
}

func landed(to *url.URL) bool { return to.Path == "/in" || to.Path == "/out" }

// back goes to a callback and returns where that leads: "in" with the
// provider, or "out" with the reason.
func (b *browser) back(callback *url.URL) string {
	b.Helper()
	if !landed(callback) {
		callback = b.walk(callback.String(), landed)
	}
	if query := callback.Query(); callback.Path == "/in" {
		if query.Get("from") != "belfry" {
			b.Errorf("the redirect's own query is lost: %s", callback)
		}
		return "in " + query.Get("validation")
	}
	return "out " + callback.Query().Get("reason")
}

// visit logs in through a provider.
func (b *browser) visit(name string) string { b.Helper(); return b.back(b.leave(name)) }

// enters is visit, which must succeed; it returns the user's uuid.
func (b *browser) enters(name string) string {
	b.Helper()
	b.is(b.visit(name), "in "+name)
	return b.who()
}

func (b *browser) is(got, want string) {
	b.Helper()
	if got != want {
		b.Fatalf("got %q, want %q", got, want)
	}
}

// me is the user who is logged in, nil for nobody.
func (b *browser) me() fields {
	b.Helper()
	res, body := b.ask(http.MethodGet, "/auth/me", "")
	if res.StatusCode == http.StatusUnauthorized {
		return nil
	}
	var o fields
	b.must(json.Unmarshal(body, &o))
	return o
}

// who is the uuid of the user who is logged in, "" for nobody.
func (b *browser) who() string {
	b.Helper()
	uuid, _ := b.me()["uuid"].(string)
	return uuid
}

// ways are the uuids of the user's idents, sorted.
func (b *browser) ways() (uuids []string) {
	b.Helper()
	idents, _ := b.me()["idents"].([]any)
	for _, entry := range idents {
		uuids = append(uuids, entry.(map[string]any)["uuid"].(string))
	}
	slices.Sort(uuids)
	return uuids
}

// hasWays waits until the user has just these idents.
func (b *browser) hasWays(want ...string) {
	b.Helper()
	slices.Sort(want)
	eventually(b, func() error {
		if got := b.ways(); !slices.Equal(got, want) {
			return fmt.Errorf("idents %v, want %v", got, want)
		}
		return nil
	})
}

// cookies are those that the browser has for belfry.
func (b *browser) cookies() []*http.Cookie {
	u, err := url.Parse(b.url)
	b.must(err)
	return b.Jar.Cookies(u)
}

// session is the token of the session, "" without one.
func (b *browser) session() string {
	for _, c := range b.cookies() {
		if c.Name == "belfry" {
			return c.Value
		}
	}
	return ""
}

// unlink gives a way in up, and returns the status.
func (b *browser) unlink(ident string) int {
	b.Helper()
	res, _ := b.ask(http.MethodDelete, "/auth/idents/"+ident, "")
	return res.StatusCode
}

// secrets are what belfry handed out that nobody else may see, and what it
// told.
type secrets struct {
	mu    sync.Mutex
	known map[string]string // what it is
	told  strings.Builder
}

func (s *secrets) add(what, value string) {
	if len(value) < 8 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known == nil {
		s.known = map[string]string{}
	}
	s.known[value] = what
}

// sessionID is how many letters of a session's token are its id, which is none.
const sessionID = 22

// received collects what a reply holds.
func (s *secrets) received(res *http.Response, body []byte) {
	for _, c := range res.Cookies() {
		switch {
		case c.Name != "belfry":
			s.add("the cookie of a visit", c.Value)
		case len(c.Value) > sessionID:
			s.add("the token of a session", c.Value)
			s.add("the secret of a session", c.Value[sessionID:])
		}
	}
	if to, err := res.Location(); err == nil {
		for _, name := range []string{"state", "nonce", "code_challenge", "oauth_token"} {
			s.add(name, to.Query().Get(name))
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, values := range res.Header {
		// These hand a secret to whom it belongs.
		if name != "Set-Cookie" && name != "Location" {
			fmt.Fprintln(&s.told, name, values)
		}
	}
	s.told.Write(body)
}
