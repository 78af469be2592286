package login_test

import (
	"testing"

	"belfry/pkg/api/apitest"
)

// RFC 6750, section 3.1: only what a token that was sent is to blame for has an error. A program that gets one logs in
// again; one that gets none has sent no token.
func TestTheChallengeSaysWhetherTheTokenIsToBlame(t *testing.T) {
	const invalid, scope = `Bearer error="invalid_token"`, `Bearer error="insufficient_scope"`
	f := apitest.StartLogin(t, 1)[0]
	session := f.Register("ada@example.com", "a fine password")
	key := makeKey(f, session, `{"name":"k","password":"a fine password","rule":"method == \"GET\""}`)
	ended := f.LogIn("ada@example.com", "a fine password")
	f.Do("DELETE", "/auth", "", "Authorization", "Bearer "+ended)
	for _, c := range []struct {
		name          string
		method, path  string
		body          string
		authorization string
		status        int
		challenge     string
	}{
		{"no token", "GET", "/auth/me", "", "", 401, "Bearer"},
		{"no token, another scheme", "GET", "/auth/me", "", "Basic YTpi", 401, "Bearer"},
		{"no token, the scheme alone", "GET", "/auth/me", "", "Bearer", 401, "Bearer"},
		{"a wrong one", "GET", "/auth/me", "", "Bearer wrong", 401, invalid},
		{"a wrong one, the scheme in other letters", "GET", "/auth/me", "", "bearer wrong", 401, invalid},
		{"for a get", "GET", "/books/x", "", "Bearer wrong", 401, invalid},
		{"for a list", "GET", "/books", "", "Bearer wrong", 401, invalid},
		{"for a write", "POST", "/books", `{}`, "Bearer wrong", 401, invalid},
		{"for a change", "PATCH", "/books/x", `{}`, "Bearer wrong", 401, invalid},
		{"for a deletion", "DELETE", "/books/x", "", "Bearer wrong", 401, invalid},
		{"for the list of sessions", "GET", "/auth/sessions", "", "Bearer wrong", 401, invalid},
		{"for a key", "POST", "/auth/keys", `{"name":"x","password":"a fine password"}`, "Bearer wrong", 401, invalid},
		{"a key that is not for the request", "POST", "/books", `{}`, "Bearer " + key.Token, 403, scope},
		{"a key that manages no account", "GET", "/auth/sessions", "", "Bearer " + key.Token, 403, scope},
		{"a wrong password beside a wrong token, which a login ignores", "POST", "/auth/email",
			`{"login":"ada@example.com","password":"a wrong password"}`, "Bearer wrong", 403, ""},
		{"a wrong flow beside a wrong token, which a login ignores", "POST", "/auth/second-factor",
			`{"flow":"x","code":"123456","type":"totp"}`, "Bearer wrong", 401, "Bearer"},
		{"a wrong password of who is logged in", "POST", "/auth/keys", `{"name":"x","password":"a wrong password"}`,
			"Bearer " + session, 403, ""},
	} {
		r := f.Do(c.method, c.path, c.body, "Authorization", c.authorization)
		if got := r.Header.Get("Www-Authenticate"); r.StatusCode != c.status || got != c.challenge {
			t.Errorf("%s: %d, %q, want %d, %q", c.name, r.StatusCode, got, c.status, c.challenge)
		}
	}
}
