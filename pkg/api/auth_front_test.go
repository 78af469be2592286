package api_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"belfry/pkg/api"
	"belfry/pkg/auth"
	"belfry/pkg/mail"
	"belfry/pkg/store"
	"belfry/pkg/store/driver"
	"belfry/pkg/store/filestore"
	"belfry/pkg/store/query"
)

// shared is a backend whose stores several fronts open, as several processes
// do with a database.
type shared struct {
	driver.Backend
	open map[string]driver.Store
}

func (b *shared) Open(ctx context.Context, spec driver.Spec) (driver.Store, error) {
	if b.open[spec.Name] == nil {
		s, err := b.Backend.Open(ctx, spec)
		if err != nil {
			return nil, err
		}
		b.open[spec.Name] = s
	}
	return b.open[spec.Name], nil
}

// gates are fronts at which one can log in, over the same records. change may
// set the options of each.
func gates(t *testing.T, n int, change ...any) []*front {
	t.Helper()
	folder, err := filestore.Open(t.TempDir(), filestore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := folder.Close(); err != nil {
			t.Error(err)
		}
	})
	backend := &shared{folder, map[string]driver.Store{}}
	all := make([]*front, n)
	for i := range all {
		all[i] = gate(t, backend, change)
	}
	return all
}

func gate(t *testing.T, backend driver.Backend, change []any) *front {
	t.Helper()
	fails := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	o := auth.Options{BaseURL: "http://belfry.example.org", Hash: auth.HashParams{Memory: 8, Time: 1, Threads: 1}}
	users := []store.Mapping{
		{Source: "Idents", Target: "Users", Key: "user", Array: "idents", Cascade: true},
		{Source: "Sessions", Target: "Users", Key: "user", Cascade: true},
	}
	expires := []query.Index{{Name: auth.ExpiresIndex, Fields: []string{auth.ExpiresIndex}}}
	for _, s := range []struct {
		into **store.Store
		opts store.Options
	}{
		{&o.Users, store.Options{Name: "Users", Private: []string{"password"}, Arrays: []string{"idents"}}},
		{&o.Idents, store.Options{Name: "Idents", Maps: users[:1]}},
		{&o.Sessions, store.Options{Name: "Sessions", Maps: users[1:], Indexes: expires}},
		{&o.Tokens, store.Options{Name: "Tokens", Indexes: expires}},
	} {
		opened, err := store.Open(t.Context(), backend, s.opts)
		fails(err)
		*s.into = opened
	}
	texts, err := mail.ParseTemplates("a mail", "", "{{.Link}}")
	fails(err)
	o.Email = &auth.Email{
		PostValidation: true, SkipValidation: true, TokenTTL: time.Hour, RecoveryTTL: time.Hour, MailInterval: time.Hour,
		From: "belfry@example.org", Validation: texts, Recovery: texts, Taken: texts,
	}
	a := &api.Auth{Success: "/in", Failure: "/out", Register: "/register", Recovery: "/recovery"}
	for _, c := range change {
		switch c := c.(type) {
		case func(*auth.Options):
			c(&o)
		case func(*api.Auth):
			c(a)
		}
	}
	a.Service = auth.New(o)
	t.Cleanup(a.Service.Close)
	f := start(t, append(change, func(o *api.Options) { o.Auth = a })...)
	f.Server.Client().CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return f
}

const adas = `{"login":"ada@example.com","password":"a fine password"}`

// registers makes a user, and returns the token of a session.
func (f *front) registers(login, password string) string {
	f.Helper()
	return token(f.do("POST", "/auth/email", `{"register":true,"login":"`+login+`","password":"`+password+`"}`).want(204))
}

// logsIn returns the token of a session.
func (f *front) logsIn(login, password string) string {
	f.Helper()
	return token(f.do("POST", "/auth/email", `{"login":"`+login+`","password":"`+password+`"}`).want(204))
}

func token(r reply) string {
	r.front.Helper()
	for _, c := range r.Cookies() {
		if strings.HasSuffix(c.Name, "belfry") && c.MaxAge > 0 {
			return c.Value
		}
	}
	r.front.Fatalf("no session: %v", r.Header)
	return ""
}

// me asks who a token is.
func (f *front) me(token string) reply {
	f.Helper()
	return f.do("GET", "/auth/me", "", "Authorization", "Bearer "+token)
}

// Sessions and their ends, passwords and failures are known to every front at
// once.
func TestTwoFronts(t *testing.T) {
	both := gates(t, 2, func(o *auth.Options) { o.Limits.Account = 3 })
	for i, here := range both {
		there := both[1-i]
		login := []string{"ada@example.com", "bob@example.com"}[i]
		first := here.registers(login, "a fine password")
		there.me(first).want(200)
		there.do("POST", "/auth/email", `{"register":true,"login":"`+login+`","password":"another password"}`).want(409)

		second := there.logsIn(login, "a fine password")
		var list struct{ Sessions []auth.SessionInfo }
		here.do("GET", "/auth/sessions", "", "Authorization", "Bearer "+first).want(200).json(&list)
		if len(list.Sessions) != 2 {
			t.Errorf("%d sessions", len(list.Sessions))
		}
		here.do("DELETE", "/auth/sessions/"+second[:22], "", "Authorization", "Bearer "+first).want(204)
		there.me(second).want(401)
		second = there.logsIn(login, "a fine password")
		there.do("DELETE", "/auth", "", "Authorization", "Bearer "+second).want(204)
		here.me(second).want(401)

		second = there.logsIn(login, "a fine password")
		next := token(here.do("PUT", "/auth/email", `{"password":"a fine password","newPassword":"a better password"}`, "Authorization", "Bearer "+first).want(204))
		there.me(first).want(401)
		there.me(second).want(401)
		there.me(next).want(200)
		there.do("POST", "/auth/email", `{"login":"`+login+`","password":"a fine password"}`).want(403)
		there.logsIn(login, "a better password")
		there.api.Auth.Service.Close() // what is noted afterwards is not waited for

		for range 3 {
			here.do("POST", "/auth/email", `{"login":"`+login+`","password":"a wrong password"}`).want(403)
		}
		here.do("POST", "/auth/email", `{"login":"`+login+`","password":"a better password"}`).want(429)
		here.api.Auth.Service.Close()
		r := there.do("POST", "/auth/email", `{"login":"`+login+`","password":"a better password"}`).want(429)
		if r.Header.Get("Retry-After") == "" {
			t.Error("no Retry-After")
		}
		there.me(next).want(200)
	}
}

// Nothing of these replies is kept by whoever passes them on.
func TestAuthRepliesAreNotKept(t *testing.T) {
	f := gates(t, 1)[0]
	session := f.registers("ada@example.com", "a fine password")
	for _, r := range []reply{
		f.do("POST", "/auth/email", adas), f.me(session), f.do("GET", "/auth", ""), f.do("GET", "/auth/sessions", "", "Authorization", "Bearer "+session),
		f.do("GET", "/auth/email/callback", ""), f.do("POST", "/auth/email/recovery", `{"login":"ada@example.com"}`), f.do("DELETE", "/auth", ""),
		f.do("GET", "/auth/me", ""), f.do("PUT", "/auth/email", `{"password":"a fine password","newPassword":"a better password"}`, "Authorization", "Bearer "+session),
	} {
		r.header("Cache-Control", "no-store")
	}
}

func TestAuthRoutes(t *testing.T) {
	f := gates(t, 1)[0]
	session := f.registers("ada@example.com", "a fine password")
	for _, c := range []struct {
		method, path string
		want         int
	}{
		{"GET", "/auth/email", 405}, {"DELETE", "/auth/email", 405}, {"POST", "/auth", 405}, {"POST", "/auth/me", 405}, {"GET", "/auth/email/recovery", 405},
		{"GET", "/auth/none", 404}, {"GET", "/auth/github", 404}, {"GET", "/auth/sessions/x", 405}, {"DELETE", "/auth/sessions/x/y", 404},
		{"DELETE", "/auth/sessions/%2e%2e", 400}, {"DELETE", "/auth/idents/a%2Fb", 400}, {"DELETE", "/auth/idents/x", 404}, {"DELETE", "/auth/sessions/" + strings.Repeat("x", 300), 400},
	} {
		f.do(c.method, c.path, "", "Authorization", "Bearer "+session).want(c.want)
	}
	f.do("HEAD", "/auth/me", "", "Authorization", "Bearer "+session).want(200)
	for _, path := range []string{"/auth/me", "/auth/sessions"} {
		f.do("GET", path, "").want(401).header("Www-Authenticate", "Bearer")
	}
	for _, c := range [][2]string{{"PUT", "/auth/email"}, {"DELETE", "/auth/idents/x"}, {"DELETE", "/auth/sessions/x"}} {
		f.do(c[0], c[1], `{}`).want(401)
	}

	f = gates(t, 1, func(o *auth.Options) { o.Email = nil })[0]
	f.do("POST", "/auth/email", adas).want(404)
	var list struct{ Providers []json.RawMessage }
	f.do("GET", "/auth", "").want(200).json(&list)
	if list.Providers == nil || len(list.Providers) > 0 {
		t.Errorf("%+v", list)
	}
}

// How a token is shown.
func TestTokensAreShown(t *testing.T) {
	for _, c := range []struct {
		baseURL, cookie, other string
	}{{"http://belfry.example.org", "belfry", "__Host-belfry"}, {"https://belfry.example.org", "__Host-belfry", "belfry"}} {
		f := gates(t, 1, func(o *auth.Options) { o.BaseURL = c.baseURL })[0]
		session := f.registers("ada@example.com", "a fine password")
		bob := f.registers("bob@example.com", "a fine password")
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
			// A program that shows a token means that one, even if it is none.
			{[]string{"Authorization", "Bearer wrong", "Cookie", c.cookie + "=" + session}, 401},
			{[]string{"Authorization", "Bearer", "Cookie", c.cookie + "=" + session}, 401},
			{[]string{"Authorization", "Bearer " + bob, "Cookie", c.cookie + "=" + session}, 200},
		} {
			r := f.do("GET", "/auth/me", "", s.headers...).want(s.want)
			if s.want == 200 && strings.Contains(r.body, "password") {
				t.Errorf("the user is told as %s", r.body)
			}
		}
		f.do("GET", "/authors/none", "", "Cookie", c.cookie+"=stale").want(404)
		f.do("GET", "/authors/none", "", "Authorization", "Bearer stale").want(401)
		f.do("GET", "/authors/none", "", "Authorization", "Bearer").want(401)
		// To log in none need be good; to log out neither.
		f.do("POST", "/auth/email", adas, "Authorization", "Bearer stale").want(204)
		f.do("POST", "/auth/email", adas, "Cookie", c.cookie+"=stale").want(204)
		f.do("DELETE", "/auth", "", "Cookie", c.cookie+"=stale").want(204)
	}
}

// A request is counted where its proxy says that it comes from.
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
		{"192.0.2.0/24", "192.0.2.1:99", "192.0.2.1", []string{"198.51.100.7:1234"}},
		{"0.0.0.0/0", "192.0.2.1:99", "203.0.113.9", []string{"203.0.113.9, 198.51.100.7"}},
	} {
		f := start(t, proxies(t, c.proxies))
		r := httptest.NewRequest("POST", "/books", strings.NewReader(`{}`))
		r.RemoteAddr = c.peer
		r.Header["X-Forwarded-For"] = c.forwarded
		f.api.ServeHTTP(httptest.NewRecorder(), r)
		if got := f.events.last().Ctx.Address; got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
}
