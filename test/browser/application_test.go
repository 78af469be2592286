package browser

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"belfry/test/kit"
)

// program is one on this machine that users log in for, as RFC 8252 has it.
type program struct {
	redirect string
	received chan url.Values // what the browser brings
}

const verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"

func startProgram(t *testing.T) program {
	t.Helper()
	received := make(chan url.Values, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/signed-in" {
			received <- r.URL.Query()
		}
		_, _ = fmt.Fprint(w, "<!doctype html><title>Done</title><main>You can close this page.</main>")
	}))
	t.Cleanup(server.Close)
	return program{server.URL + "/signed-in", received}
}

// page is the page that asks for a login.
func (p program) page() string {
	sum := sha256.Sum256([]byte(verifier))
	return "/auth/authorize?" + url.Values{
		"response_type": {"code"}, "redirect_uri": {p.redirect}, "state": {"x & y"},
		"code_challenge": {base64.RawURLEncoding.EncodeToString(sum[:])}, "code_challenge_method": {"S256"},
	}.Encode()
}

// token waits for the code, and exchanges it for a token.
func (p program) token(t *testing.T, f *fixture) string {
	t.Helper()
	var got url.Values
	ctx, cancel := kit.Patience(t.Context(), patience)
	defer cancel()
	select {
	case got = <-p.received:
	case <-ctx.Done():
		t.Fatal("the program received nothing")
	}
	if got.Get("state") != "x & y" || got.Get("code") == "" {
		t.Fatalf("the program received %v", got)
	}
	body, err := json.Marshal(map[string]string{"grant_type": "authorization_code", "code": got.Get("code"),
		"redirect_uri": p.redirect, "code_verifier": verifier})
	if err != nil {
		t.Fatal(err)
	}
	var reply struct {
		Token string `json:"access_token"`
	}
	f.request(t, "POST", "/auth/token", string(body), &reply)
	return reply.Token
}

// testApplication logs in for a program: the page asks, and its form may lead to the program.
func (f *fixture) testApplication(t *testing.T) {
	p := startProgram(t)
	f.open(t, p.page())
	f.shows(t, "A program on this device wants to act in your name: http://127.0.0.1/signed-in")
	f.good(t, "login-application")
	f.fill(t, "#login", "bob@example.com")
	f.fill(t, "#password", "wrong")
	f.press(t, "Log in")
	f.shows(t, "The e-mail address or the password is wrong.")
	f.good(t, "login-application-wrong")
	f.fill(t, "#login", "bob@example.com")
	f.fill(t, "#password", "another password")
	f.press(t, "Log in")
	f.shows(t, "You can close this page.")
	var me struct{ UUID string }
	f.request(t, "GET", "/auth/me", "", &me, "Authorization", "Bearer "+p.token(t, f))
	if me.UUID == "" {
		t.Error("the token is of nobody")
	}
}
