package app

import (
	"net/http"
	"strings"
	"testing"
)

// withCookie is a configuration in which the cookie of sessions has a name; "" is the default.
func withCookie(name string) string {
	text := "listen: 127.0.0.1:0\nbus: {listen: \"\"}\nauthentication:\n  providers: {email: {postValidation: true, " +
		"skipEmailValidation: true}}\n"
	if name != "" {
		text += "  cookie: " + name + "\n"
	}
	return text
}

// sentCookie logs in and returns the cookie of the session.
func (p *place) sentCookie(a *App, body string) *http.Cookie {
	p.Helper()
	res, err := http.Post("http://"+a.HTTPAddress()+"/auth/email", "application/json", strings.NewReader(body))
	if err != nil {
		p.Fatal(err)
	}
	_ = res.Body.Close()
	for _, c := range res.Cookies() {
		if !strings.Contains(c.Name, "-") {
			return c
		}
	}
	p.Fatalf("%s, no cookie of a session: %v", res.Status, res.Cookies())
	return nil
}

// loggedIn reports whether a token is that of a session, under the name of a cookie.
func (p *place) loggedIn(a *App, name, token string) bool {
	p.Helper()
	req, err := http.NewRequestWithContext(p.Context(), http.MethodGet, "http://"+a.HTTPAddress()+"/auth/me", nil)
	if err != nil {
		p.Fatal(err)
	}
	req.Header.Set("Cookie", name+"="+token)
	status, _ := p.send(req)
	return status == http.StatusOK
}

// Another name of the cookie logs nobody out, whether it comes by a restart or a reload, and whatever names there were
// before.
func TestAnotherNameOfTheCookieLogsNobodyOut(t *testing.T) {
	const register, login = `{"register":true,"login":"ada@example.com","password":"a fine password"}`,
		`{"login":"ada@example.com","password":"a fine password"}`
	p := newPlace(t, withCookie(""))
	a, _ := p.reloadable()
	token := p.sentCookie(a, register).Value
	check := func(now string, read ...string) {
		t.Helper()
		if c := p.sentCookie(a, login); c.Name != now {
			t.Errorf("the cookie is %s, want %s", c.Name, now)
		}
		for _, name := range append(read, now) {
			if !p.loggedIn(a, name, token) {
				t.Errorf("the cookie %s is not read", name)
			}
		}
		for _, name := range []string{"none", "", now + "x"} {
			if p.loggedIn(a, name, token) {
				t.Errorf("the cookie %q is read", name)
			}
		}
	}
	check("belfry")
	restart := func(name string) {
		p.stop(a)
		p.config = p.load(withCookie(name))
		a, _ = p.reloadable()
	}
	restart("")
	check("belfry")
	restart("shop")
	check("shop", "belfry")
	restart("shop")
	check("shop", "belfry")
	p.reload(a, withCookie("store"))
	check("store", "shop", "belfry")
	restart("store")
	check("store", "shop", "belfry")
	restart("")
	check("belfry", "store", "shop")
}
