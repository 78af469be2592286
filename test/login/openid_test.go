package login

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"belfry/test/backing"
)

// openID is belfry and a provider that others have written, which has a page of its own where it asks whether to go on.
type openID struct {
	*fixture
	provider *backing.OpenID
	callback string
	read     int // of the log
}

func newOpenID(t *testing.T, p *backing.OpenID, o options) *openID {
	t.Helper()
	const scope = `["openid", "email", "profile", "groups"]`
	o.providers = fmt.Sprintf("    oidc: {issuer: %q, clientID: %q, clientSecret: %q, scope: %s}\n", p.Issuer,
		p.ClientID, p.ClientSecret, scope)
	w := &openID{fixture: newFixture(t, o), provider: p}
	w.callback = w.url + "/auth/callback"
	w.secrets.add("the secret of the client", p.ClientSecret)
	p.Start(t, w.callback)
	return w
}

// hidden is a hidden input of a form.
var hidden = regexp.MustCompile(`name="(req|hmac)" value="([^"]*)"`)

// begin begins a login, and returns the callback that the provider redirects to.
func (w *openID) begin(b *browser) *url.URL {
	w.Helper()
	next, form := b.url+"/auth/oidc", url.Values(nil)
	for range 10 {
		method := http.MethodGet
		if form != nil {
			method = http.MethodPost
		}
		req, err := http.NewRequestWithContext(w.Context(), method, next, strings.NewReader(form.Encode()))
		w.must(err)
		if form != nil {
			req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		}
		res, body := b.send(req)
		if inputs := hidden.FindAllSubmatch(body, -1); res.StatusCode == http.StatusOK && inputs != nil {
			form = url.Values{"approval": {"approve"}}
			for _, input := range inputs {
				form.Set(string(input[1]), string(input[2]))
			}
			next = res.Request.URL.String()
			continue
		}
		to, err := res.Location()
		if err != nil {
			w.Fatalf("%s leads nowhere: %s %s", next, res.Status, body)
		}
		if strings.HasPrefix(to.String(), w.callback) || landed(to) {
			w.secrets.add("a code", to.Query().Get("code"))
			return to
		}
		next, form = to.String(), nil
	}
	w.Fatal("redirects without end")
	return nil
}

func (w *openID) login(b *browser) string { w.Helper(); return b.finish(w.begin(b)) }

// logged waits until the log has a line since the last call that has all of some words, and returns how many have the
// first one.
func (w *openID) logged(words ...string) (lines int) {
	w.Helper()
	eventually(w, func() error {
		lines = 0
		found := false
		log := w.server.Log()[w.read:]
		for line := range strings.Lines(log) {
			if !strings.Contains(line, words[0]) {
				continue
			}
			lines++
			all := true
			for _, word := range words[1:] {
				all = all && strings.Contains(line, word)
			}
			found = found || all
		}
		if !found {
			return fmt.Errorf("no line has %q:\n%s", words, log)
		}
		return nil
	})
	w.read = len(w.server.Log())
	return lines
}

// profile is that of the ident of a user.
func (w *openID) profile(sub string) map[string]any {
	w.Helper()
	profile, _ := w.ident(sub, "oidc")["profile"].(map[string]any)
	return profile
}

// twice opens the callback of a login again: in its browser, and in another one.
func (w *openID) twice() {
	w.Helper()
	b := w.browser()
	callback := w.begin(b)
	send := func(b *browser) (where string) {
		res, body := b.request(http.MethodGet, callback.RequestURI(), "")
		if res.StatusCode != http.StatusFound {
			w.Fatalf("%s %s", res.Status, body)
		}
		return res.Header.Get("Location")
	}
	where := send(b)
	user, session, cookies, counted := b.userUUID(), b.session(), fmt.Sprint(b.cookies()), w.count()
	if user == "" {
		w.Fatalf("nobody is logged in: the browser is sent to %s", where)
	}
	for range 4 { // more than there are attempts
		b.wantText(send(b), where)
		other := w.browser()
		res, page := other.request(http.MethodGet, send(other), "")
		if res.StatusCode != http.StatusOK || !strings.Contains(string(page), "This login is finished. It can") {
			w.Errorf("another browser gets %s %s", res.Status, page)
		}
		if len(other.cookies()) > 0 {
			w.Errorf("another browser gets %v", other.cookies())
		}
	}
	var list struct{ Sessions []any }
	_, body := b.request(http.MethodGet, "/auth/sessions", "")
	w.must(json.Unmarshal(body, &list))
	if len(list.Sessions) != 1 || b.session() != session || fmt.Sprint(b.cookies()) != cookies || w.count() != counted {
		w.Errorf("a repetition has made something: %s, cookies %v", body, b.cookies())
	}
	next := w.browser()
	next.request(http.MethodGet, w.begin(next).RequestURI(), "")
	next.wantText(next.userUUID(), user)
}

func TestDexLogsUsersIn(t *testing.T) {
	t.Parallel()
	const groups = 3000
	w := newOpenID(t, backing.Dex(t, groups), options{})
	user := ""
	for range 2 { // the second time with other keys: dex has started again
		b := w.browser()
		b.wantText(w.login(b), "in oidc")
		if user == "" {
			user = b.userUUID()
		}
		b.wantText(b.userUUID(), user)
		w.provider.Kill()
		w.provider.Start(t, w.callback)
	}
	const sub = "Cg0wLTM4NS0yODA4OS0wEgRtb2Nr" // of the user 0-385-28089-0 of the connector mock
	profile := w.profile(sub)
	if profile["email"] != "kilgore@kilgore.trout" || profile["email_verified"] != true ||
		profile["name"] != "Kilgore Trout" || profile["groups"] != nil {
		t.Errorf("the profile is %v", profile)
	}
	for _, claim := range []string{"nonce", "exp", "iat", "at_hash"} { // dex has them in its userinfo document, too
		if profile[claim] != nil {
			t.Errorf("the profile has %s, which is of one login", claim)
		}
	}
	if n := w.logged("could not be stored as it was sent", "groups: left out, too large"); n != 2 {
		t.Errorf("%d lines about two logins", n)
	}
}

func TestDexsCallbackMayBeOpenedTwice(t *testing.T) {
	t.Parallel()
	newOpenID(t, backing.Dex(t, 0), options{limit: 3, pages: true}).twice()
}

func TestOIDCProvidersCallbackMayBeOpenedTwice(t *testing.T) {
	t.Parallel()
	newOpenID(t, backing.OIDCProvider(t), options{limit: 3, pages: true}).twice()
}

// What is not the id is repaired or left out, wherever the provider has it: in its userinfo document, and in the ID
// token.
func TestOIDCProvidersProfiles(t *testing.T) {
	t.Parallel()
	w := newOpenID(t, backing.OIDCProvider(t), options{})
	long := strings.Repeat("x", 100_000)
	groups := func(n int) string { return `["` + strings.Repeat(`group of an organization", "`, n-1) + `last"]` }
	for i, c := range []struct {
		what, claims, more string
		want               map[string]any
		changes            string // "" for none
		unsigned           bool   // it is made in the userinfo document
	}{
		{"a plain one", `{"name": "Ada", "email": "ada@example.com", "email_verified": true}`, "",
			map[string]any{"name": "Ada", "email": "ada@example.com", "email_verified": true}, "", false},
		{"half an emoji", `{"name": "Ada \ud83d", "nickname": "ada"}`, "",
			map[string]any{"name": "Ada \ufffd", "nickname": "ada"}, "name: repaired", false},
		{"half an emoji within", `{"address": {"locality": "\ude00 London"}}`, "",
			map[string]any{"address": map[string]any{"locality": "\ufffd London"}}, "address: repaired", false},
		{"half an emoji in an address", `{"email": "ada\ud83d@example.com", "name": "Ada"}`, "",
			map[string]any{"email": nil, "name": "Ada"}, "email: left out", false},
		{"NUL", `{"name": "Ada\u0000Lovelace"}`, "", map[string]any{"name": "Ada\ufffdLovelace"}, "name: repaired",
			false},
		{"64 KiB of groups", `{"name": "Ada", "groups": ` + groups(2700) + `}`, "",
			map[string]any{"name": "Ada", "groups": nil}, "groups: left out, too large", false},
		{"thousands of groups", `{"name": "Ada", "groups": ` + groups(9000) + `}`, "",
			map[string]any{"name": "Ada", "groups": nil}, "groups: left out, too large", false},
		{"a very long picture", `{"name": "Ada", "picture": "data:image/png;base64,` + long + `"}`, "",
			map[string]any{"name": "Ada", "picture": nil}, "picture: left out, too large", false},
		{"text for a boolean", `{"email": "ada@example.com", "email_verified": "true"}`, "",
			map[string]any{"email": "ada@example.com", "email_verified": "true"}, "", false},
		{"a member again", `{"name": "Ada", "nickname": "ada"}`, `"insert": "\"nickname\":\"other\""`,
			map[string]any{"name": "Ada", "nickname": nil}, "nickname: left out", true},
		{"the same member again", `{"name": "Ada", "nickname": "ada"}`, `"insert": "\"nickname\":\"ada\""`,
			map[string]any{"name": "Ada", "nickname": "ada"}, "", true},
		{"a BOM", `{"name": "Ada"}`, `"mark": true`, map[string]any{"name": "Ada"}, "", true},
		{"Latin-1", `{"name": "Zoë", "nickname": "zoe"}`, `"latin1": true`,
			map[string]any{"name": "Zoë", "nickname": "zoe"}, "name: repaired", true},
	} {
		for _, signed := range []bool{false, true} {
			if signed && c.unsigned {
				continue
			}
			w.sub(fmt.Sprintf("%s, signed %v", c.what, signed), func(fixture *fixture) {
				w := &openID{fixture, w.provider, w.callback, len(w.server.Log())}
				sub := fmt.Sprintf("user-%d-%v", i, signed)
				settings := fmt.Sprintf(`"sub": %q, "signed": %v, "claims": %s`, sub, signed, c.claims)
				if c.more != "" {
					settings += "," + c.more
				}
				w.provider.Set(w, "{"+settings+"}")
				user := ""
				for range 2 { // a registration, and a login
					b := w.browser()
					b.wantText(w.login(b), "in oidc")
					if user == "" {
						user = b.userUUID()
					}
					b.wantText(b.userUUID(), user)
					const line = "could not be stored as it was sent"
					if c.changes == "" {
						w.must(w.server.Idle())
						if log := w.server.Log()[w.read:]; strings.Contains(log, line) {
							w.Errorf("something was changed: %s", log)
						}
					} else if n := w.logged(line, c.changes); n != 1 {
						w.Errorf("%d lines in the log", n)
					}
				}
				profile := w.profile(sub)
				for name, want := range c.want {
					if got := profile[name]; fmt.Sprint(got) != fmt.Sprint(want) {
						w.Errorf("%s is %v", name, got)
					}
				}
			})
		}
	}
}

// The log says why a login has failed, and the next one succeeds.
func TestOIDCProvidersFailures(t *testing.T) {
	t.Parallel()
	w := newOpenID(t, backing.OIDCProvider(t), options{})
	for _, c := range []struct{ what, settings, want, logged string }{
		{"it works", `{}`, "in oidc", ""},
		{"the user refuses", `{"error": "access_denied"}`, "out denied", "the login was denied at "},
		{"a standard error", `{"error": "login_required"}`, "out rejected", "login_required"},
		{"an outage", `{"error": "temporarily_unavailable"}`, "out provider", "temporarily_unavailable"},
		{"another key", `{"rotate": true}`, "in oidc", ""},
		{"a key that is not shown", `{"rotate": "hidden"}`, "out rejected",
			"is signed with none of the keys at its jwks_uri"},
		{"it is shown", `{"rotate": true}`, "in oidc", ""},
		{"a clock that is late", `{"late": 1500}`, "out rejected", "expired 15m"},
		{"a clock that is right", `{}`, "in oidc", ""},
		{"a shared key", `{"client": {"id_token_signed_response_alg": "HS256"}}`, "out rejected",
			"is signed by HS256, whose key the client has as well"},
		{"an encrypted ID token",
			`{"client": {"id_token_encrypted_response_alg": "dir", "id_token_encrypted_response_enc": "A128CBC-HS256"}}`, "out rejected", "is encrypted, which belfry does not support"},
		{"another secret", `{"client": {"client_secret": "another one"}}`, "out rejected", "invalid_client"},
		{"as before", `{"rotate": true}`, "in oidc", ""},
	} {
		w.sub(c.what, func(fixture *fixture) {
			w := &openID{fixture, w.provider, w.callback, len(w.server.Log())}
			w.provider.Set(w, c.settings)
			b := w.browser()
			b.wantText(w.login(b), c.want)
			if c.logged == "" {
				if b.userUUID() == "" {
					w.Error("nobody is logged in")
				}
				return
			}
			if b.userUUID() != "" || len(b.cookies()) > 0 {
				w.Errorf("the cookies are %v", b.cookies())
			}
			w.logged("a login failed", c.logged)
		})
	}
}
