package login_test

import (
	"encoding/json"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"belfry/pkg/account"
	"belfry/pkg/account/sessions"
	"belfry/pkg/api/apitest"
)

// slow is a clock that goes by 2 ms each time it is read: the delay after wrong guesses is over in a second.
func slow() func() time.Time {
	start, read := time.Now(), atomic.Int64{}
	return func() time.Time { return start.Add(time.Duration(read.Add(2)) * time.Millisecond) }
}

// New and ended sessions, changed passwords and failed logins apply to every front
// at once.
func TestTwoFronts(t *testing.T) {
	now := slow()
	both := apitest.StartLogin(t, 2, func(o *account.Options) { o.Limits.Account, o.Now = 3, now })
	for i, here := range both {
		there := both[1-i]
		login := []string{"ada@example.com", "bob@example.com"}[i]
		first := here.Register(login, "a fine password")
		there.Me(first).Want(200)
		there.Do("POST", "/auth/email", `{"register":true,"login":"`+login+`","password":"another password"}`).Want(409)

		second := there.LogIn(login, "a fine password")
		var list struct{ Sessions []sessions.Info }
		here.Do("GET", "/auth/sessions", "", "Authorization", "Bearer "+first).Want(200).JSON(&list)
		if len(list.Sessions) != 2 {
			t.Errorf("%d sessions", len(list.Sessions))
		}
		here.Do("DELETE", "/auth/sessions/"+second[:22], "", "Authorization", "Bearer "+first).Want(204)
		there.Me(second).Want(401)
		second = there.LogIn(login, "a fine password")
		there.Do("DELETE", "/auth", "", "Authorization", "Bearer "+second).Want(204)
		here.Me(second).Want(401)

		second = there.LogIn(login, "a fine password")
		next := apitest.Token(here.Do("PUT", "/auth/email",
			`{"password":"a fine password","newPassword":"a better password"}`, "Authorization",
			"Bearer "+first).Want(204))
		there.Me(first).Want(401)
		there.Me(second).Want(401)
		there.Me(next).Want(200)
		there.Do("POST", "/auth/email", `{"login":"`+login+`","password":"a fine password"}`).Want(403)
		there.LogIn(login, "a better password")
		there.Auth.Close() // what is noted afterwards is not waited for

		for range 3 {
			here.Do("POST", "/auth/email", `{"login":"`+login+`","password":"a wrong password"}`).Want(403)
		}
		here.Do("POST", "/auth/email", `{"login":"`+login+`","password":"a better password"}`).Want(429)
		here.Auth.Close()
		r := there.Do("POST", "/auth/email", `{"login":"`+login+`","password":"a better password"}`).Want(429)
		if r.Header.Get("Retry-After") == "" {
			t.Error("no Retry-After")
		}
		there.Me(next).Want(200)
	}
}

// Proxies and browsers must not cache these replies.
func TestAuthRepliesAreNotCached(t *testing.T) {
	f := apitest.StartLogin(t, 1)[0]
	session := f.Register("ada@example.com", "a fine password")
	for _, r := range []apitest.Reply{
		f.Do("POST", "/auth/email", apitest.Ada), f.Me(session), f.Do("GET", "/auth", ""),
		f.Do("GET", "/auth/sessions", "", "Authorization", "Bearer "+session),
		f.Do("GET", "/auth/email/callback", ""), f.Do("POST", "/auth/email/recovery", `{"login":"ada@example.com"}`),
		f.Do("DELETE", "/auth", ""),
		f.Do("GET", "/auth/me", ""), f.Do("PUT", "/auth/email",
			`{"password":"a fine password","newPassword":"a better password"}`, "Authorization", "Bearer "+session),
	} {
		r.HasHeader("Cache-Control", "no-store")
	}
}

func TestAuthRoutes(t *testing.T) {
	f := apitest.StartLogin(t, 1)[0]
	session := f.Register("ada@example.com", "a fine password")
	for _, c := range []struct {
		method, path string
		want         int
	}{
		{"GET", "/auth/email", 405}, {"DELETE", "/auth/email", 405}, {"POST", "/auth", 405}, {"POST", "/auth/me", 405},
		{"GET", "/auth/email/recovery", 405},
		{"GET", "/auth/none", 404}, {"GET", "/auth/github", 404}, {"GET", "/auth/sessions/x", 405},
		{"DELETE", "/auth/sessions/x/y", 404},
		{"DELETE", "/auth/sessions/%2e%2e", 400}, {"DELETE", "/auth/idents/a%2Fb", 400},
		{"DELETE", "/auth/idents/x", 404}, {"DELETE", "/auth/sessions/" + strings.Repeat("x", 300), 400},
	} {
		f.Do(c.method, c.path, "", "Authorization", "Bearer "+session).Want(c.want)
	}
	f.Do("HEAD", "/auth/me", "", "Authorization", "Bearer "+session).Want(200)
	for _, path := range []string{"/auth/me", "/auth/sessions"} {
		f.Do("GET", path, "").Want(401).HasHeader("Www-Authenticate", "Bearer")
	}
	for _, c := range [][2]string{{"PUT", "/auth/email"}, {"DELETE", "/auth/idents/x"},
		{"DELETE", "/auth/sessions/x"}} {
		f.Do(c[0], c[1], `{}`).Want(401)
	}

	f = apitest.StartLogin(t, 1, func(o *account.Options) { o.Email = nil })[0]
	f.Do("POST", "/auth/email", apitest.Ada).Want(404)
	var list struct{ Providers []json.RawMessage }
	f.Do("GET", "/auth", "").Want(200).JSON(&list)
	if list.Providers == nil || len(list.Providers) > 0 {
		t.Errorf("%+v", list)
	}
}

// How a token is shown.
func TestTokensAreShown(t *testing.T) {
	for _, c := range []struct {
		baseURL, cookie, other string
	}{{"http://belfry.example.org", "belfry", "__Host-belfry"},
		{"https://belfry.example.org", "__Host-belfry", "belfry"}} {
		f := apitest.StartLogin(t, 1, func(o *account.Options) { o.BaseURL = c.baseURL })[0]
		session := f.Register("ada@example.com", "a fine password")
		bob := f.Register("bob@example.com", "a fine password")
		for _, s := range []struct {
			headers []string
			want    int
		}{
			{[]string{"Authorization", "Bearer " + session}, 200},
			{[]string{"Authorization", "bEARER   " + session + "  "}, 200},
			{[]string{"Authorization", "Bearer " + session + "x"}, 401},
			{[]string{"Authorization", session}, 401},
			{[]string{"Authorization", "Basic " + session}, 401},
			{[]string{"Cookie", c.cookie + "=" + session}, 200},
			{[]string{"Cookie", "a=b; " + c.cookie + "=" + session + "; c=d"}, 200},
			{[]string{"Cookie", c.other + "=" + session}, 401},
			{[]string{"Cookie", c.cookie + "=" + session + "x"}, 401},
			{[]string{"Cookie", c.cookie + "="}, 401},
			{[]string{"Cookie", c.cookie}, 401},
			{[]string{"Authorization", "Basic YTpi", "Cookie", c.cookie + "=" + session}, 200},
			// A token in the Authorization header is the one that counts, even an invalid one.
			{[]string{"Authorization", "Bearer wrong", "Cookie", c.cookie + "=" + session}, 401},
			{[]string{"Authorization", "Bearer", "Cookie", c.cookie + "=" + session}, 401},
			{[]string{"Authorization", "Bearer " + bob, "Cookie", c.cookie + "=" + session}, 200},
		} {
			r := f.Do("GET", "/auth/me", "", s.headers...).Want(s.want)
			if s.want == 200 && strings.Contains(r.Text, "password") {
				t.Errorf("the reply has a password: %s", r.Text)
			}
		}
		f.Do("GET", "/authors/none", "", "Cookie", c.cookie+"=stale").Want(404)
		f.Do("GET", "/authors/none", "", "Authorization", "Bearer stale").Want(401)
		f.Do("GET", "/authors/none", "", "Authorization", "Bearer").Want(401)
		// Login and logout need no valid token.
		f.Do("POST", "/auth/email", apitest.Ada, "Authorization", "Bearer stale").Want(204)
		f.Do("POST", "/auth/email", apitest.Ada, "Cookie", c.cookie+"=stale").Want(204)
		f.Do("DELETE", "/auth", "", "Cookie", c.cookie+"=stale").Want(204)
	}
}

// A request counts for the client address that a trusted proxy reports.
func TestClientAddress(t *testing.T) {
	for _, c := range []struct {
		proxies, peer, want string
		forwarded           []string
	}{
		{"", "192.0.2.1:99", "192.0.2.1", []string{"198.51.100.7"}},
		{"192.0.2.0/24", "192.0.2.1:99", "198.51.100.7", []string{"198.51.100.7"}},
		{"192.0.2.0/24", "192.0.2.1:99", "198.51.100.7", []string{"203.0.113.9, 198.51.100.7"}},
		{"192.0.2.0/24", "192.0.2.1:99", "198.51.100.7", []string{"203.0.113.9", "198.51.100.7"}},
		{"192.0.2.0/24", "192.0.2.1:99", "198.51.100.7", []string{"198.51.100.7 , 192.0.2.2,192.0.2.3"}},
		{"192.0.2.0/24", "192.0.2.1:99", "192.0.2.1", nil},
		{"192.0.2.0/24", "192.0.2.1:99", "192.0.2.1", []string{""}},
		{"192.0.2.0/24", "192.0.2.1:99", "192.0.2.1", []string{"198.51.100.7, unknown"}},
		{"192.0.2.0/24", "192.0.2.1:99", "192.0.2.2", []string{"garbage, 192.0.2.2"}},
		{"192.0.2.0/24", "203.0.113.1:99", "203.0.113.1", []string{"198.51.100.7"}},
		{"192.0.2.0/24", "[::ffff:192.0.2.1]:99", "2001:db8::7", []string{"2001:db8::7"}},
		{"2001:db8::/32", "[2001:db8::1%eth0]:99", "198.51.100.7", []string{"::ffff:198.51.100.7"}},
		{"192.0.2.0/24", "192.0.2.1:99", "198.51.100.7", []string{"198.51.100.7:1234"}},
		{"0.0.0.0/0", "192.0.2.1:99", "203.0.113.9", []string{"203.0.113.9, 198.51.100.7"}},
	} {
		f := apitest.Start(t, proxies(t, c.proxies))
		r := httptest.NewRequest("POST", "/books", strings.NewReader(`{}`))
		r.RemoteAddr = c.peer
		r.Header["X-Forwarded-For"] = c.forwarded
		f.API.ServeHTTP(httptest.NewRecorder(), r)
		if got := f.Events.Last().Ctx.Address; got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
}
