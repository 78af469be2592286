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

	"belfry/test/provider"
)

// browser follows redirects and has cookies.
type browser struct {
	*fixture
	http.Client
	header http.Header // that it sends to belfry
}

func (w *fixture) browser() *browser {
	w.Helper()
	jar, err := cookiejar.New(nil)
	w.must(err)
	b := &browser{fixture: w, header: http.Header{}}
	b.Client = http.Client{Jar: jar, Transport: b,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return b
}

// connections are those of browsers. The servers of other tests close the idle ones of http.DefaultTransport when they
// end, also one that a request has just begun to use.
var connections = &http.Transport{}

// RoundTrip records what belfry receives and sends.
func (b *browser) RoundTrip(req *http.Request) (*http.Response, error) {
	toBelfry := strings.HasPrefix(req.URL.String(), b.url+"/")
	if toBelfry {
		req = req.Clone(req.Context())
		for name, values := range b.header {
			req.Header[name] = values
		}
	}
	res, err := connections.RoundTrip(req)
	if err != nil || !toBelfry {
		return res, err
	}
	body, err := io.ReadAll(res.Body)
	_ = res.Body.Close()
	res.Body = io.NopCloser(bytes.NewReader(body))
	b.secrets.received(res, body)
	return res, err
}

// request makes one request to belfry.
func (b *browser) request(method, path, body string) (*http.Response, []byte) {
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

// followRedirects follows redirects from a URL until one that ends them, which
// it returns without requesting it.
func (b *browser) followRedirects(from string, ends func(*url.URL) bool) *url.URL {
	b.Helper()
	for range 10 {
		req, err := http.NewRequestWithContext(b.Context(), http.MethodGet, from, http.NoBody)
		b.must(err)
		res, body := b.send(req)
		if res.StatusCode == http.StatusOK && bytes.HasPrefix(body, []byte("<form")) {
			res, body = b.post(b.url+"/auth/callback", provider.Form(b, bytes.NewReader(body), b.url+"/auth/callback"))
		}
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

// post sends a form of another site, as browsers do: without cookies that are SameSite=Lax.
func (b *browser) post(to string, form url.Values) (*http.Response, []byte) {
	b.Helper()
	req, err := http.NewRequestWithContext(b.Context(), http.MethodPost, to, strings.NewReader(form.Encode()))
	b.must(err)
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Origin", b.providers.URL)
	req.Header.Set("Sec-Fetch-Site", "cross-site")
	without := *b
	without.Jar = nil
	return without.send(req)
}

// begin starts a flow and returns the callback that the provider redirects to.
func (b *browser) begin(name string) *url.URL {
	b.Helper()
	return b.followRedirects(b.url+"/auth/"+name,
		func(to *url.URL) bool { return to.Path == "/auth/callback" || landed(to) })
}

func landed(to *url.URL) bool { return to.Path == "/in" || to.Path == "/out" }

// finish requests a callback and returns its outcome: "in" with the provider,
// or "out" with the reason.
func (b *browser) finish(callback *url.URL) string {
	b.Helper()
	if !landed(callback) {
		callback = b.followRedirects(callback.String(), landed)
	}
	if query := callback.Query(); callback.Path == "/in" {
		if query.Get("from") != "belfry" {
			b.Errorf("the redirect's own query is lost: %s", callback)
		}
		return "in " + query.Get("validation")
	}
	return "out " + callback.Query().Get("reason")
}

// login logs in through a provider.
func (b *browser) login(name string) string { b.Helper(); return b.finish(b.begin(name)) }

// mustLogin is login, which must succeed; it returns the user's uuid.
func (b *browser) mustLogin(name string) string {
	b.Helper()
	b.wantText(b.login(name), "in "+name)
	return b.userUUID()
}

func (b *browser) wantText(got, want string) {
	b.Helper()
	if got != want {
		b.Fatalf("got %q, want %q", got, want)
	}
}

// me is the user who is logged in, nil for none.
func (b *browser) me() fields {
	b.Helper()
	res, body := b.request(http.MethodGet, "/auth/me", "")
	if res.StatusCode == http.StatusUnauthorized {
		return nil
	}
	var o fields
	b.must(json.Unmarshal(body, &o))
	return o
}

// userUUID is the uuid of the user who is logged in, "" for none.
func (b *browser) userUUID() string {
	b.Helper()
	uuid, _ := b.me()["uuid"].(string)
	return uuid
}

// idents are the uuids of the user's idents, sorted.
func (b *browser) idents() (uuids []string) {
	b.Helper()
	idents, _ := b.me()["idents"].([]any)
	for _, entry := range idents {
		uuids = append(uuids, entry.(map[string]any)["uuid"].(string))
	}
	slices.Sort(uuids)
	return uuids
}

// waitForIdents waits until the user has exactly these idents.
func (b *browser) waitForIdents(want ...string) {
	b.Helper()
	slices.Sort(want)
	eventually(b, func() error {
		if got := b.idents(); !slices.Equal(got, want) {
			return fmt.Errorf("idents %v, want %v", got, want)
		}
		return nil
	})
}

// cookies are the browser's cookies for belfry.
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

// unlink unlinks an ident, and returns the status.
func (b *browser) unlink(ident string) int {
	b.Helper()
	res, _ := b.request(http.MethodDelete, "/auth/idents/"+ident, "")
	return res.StatusCode
}

// secrets are the secrets that belfry has sent, and all of its replies.
type secrets struct {
	mu      sync.Mutex
	known   map[string]string // secret to its description
	replies strings.Builder
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

// sessionID is the length of the id in a session's token; the id is not secret.
const sessionID = 22

// received records a response.
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
		// These send a secret to its owner.
		if name != "Set-Cookie" && name != "Location" {
			fmt.Fprintln(&s.replies, name, values)
		}
	}
	s.replies.Write(body)
}
