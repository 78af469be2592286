package api_test

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"belfry/config"
	"belfry/pkg/account"
	"belfry/pkg/account/sessions"
	"belfry/pkg/api"
	"belfry/pkg/api/apitest"
	"belfry/pkg/api/login"
	"belfry/pkg/api/pages"
)

// below is the path of the base URL.
const below = "/api/v1"

// startBelow starts a front that is reached below a path. A proxy passes the path on or removes it.
func startBelow(t *testing.T, scheme string) *apitest.Front {
	t.Helper()
	templates, err := pages.Load("")
	if err != nil {
		t.Fatal(err)
	}
	site := &pages.Options{
		Templates: templates, Export: true,
		Paths: map[string]string{"start": "/", "login": "/login", "register": "/register", "recovery": "/recovery",
			"mail": "/login/mail", "address": "/login/address", "failed": "/login-failed",
			"second-factor": "/second-factor", "account": "/account"},
		Links: pages.Links{Start: "/", Login: "/login", Register: "/register", Recovery: "/recovery",
			MailLogin: "/login/mail", OpenAPI: "/openapi.json", AsyncAPI: "/asyncapi.json", Console: "/console",
			Account: "/account"},
		Stores: []pages.Store{{Name: "Books", URL: "/books", List: true}},
	}
	return apitest.StartLogin(t, 1,
		func(o *account.Options) {
			o.BaseURL, o.Redirects = scheme+"://localhost"+below, []string{"https://app.example.net/in"}
			o.Passkeys = &config.Passkeys{RPID: "localhost", RPName: "x", Origins: []string{scheme + "://localhost"}}
		},
		func(o *login.Options) {
			o.SuccessRedirect, o.FailureRedirect, o.AccountRedirect, o.SecondFactorRedirect = "/", "/login-failed",
				"/account", "https://app.example.net/second"
		},
		func(o *api.Options) { o.Site = site })[0]
}

var place = regexp.MustCompile(`\s(href|src|action|data-options|data-step-up|data-document)="([^"]*)"`)

// Every place that a page names is below the path, wherever the request came from.
func TestPagesBelowAPath(t *testing.T) {
	f := startBelow(t, "http")
	cookie := "belfry=" + f.Register("ada@example.com", "a fine password")
	authorize := "/auth/authorize?" + url.Values{
		"response_type": {"code"}, "redirect_uri": {"https://app.example.net/in"}, "state": {"s"},
		"code_challenge": {"E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"}, "code_challenge_method": {"S256"},
	}.Encode()
	found := 0
	for _, path := range []string{
		"/", "/?validation=email", "/login", "/register", "/recovery", "/recovery?login=a&token=b", "/login/mail",
		"/login/mail?mail=sent&login=a", "/login/address?login=a&token=b&change=undo",
		"/login-failed", "/second-factor?factors=totp+email+passkey+recovery&mail=sent", "/account",
		"/account?setup=totp", authorize,
	} {
		for _, as := range []string{"", cookie} {
			plain, prefixed := f.Do("GET", path, "", "Cookie", as).Want(200),
				f.Do("GET", below+path, "", "Cookie", as).Want(200)
			if plain.Text != prefixed.Text {
				t.Errorf("%s differs:\n%s\n%s", path, plain.Text, prefixed.Text)
			}
			for _, p := range place.FindAllStringSubmatch(plain.Text, -1) {
				found++
				if !strings.HasPrefix(p[2], below+"/") && p[2] != "data:," {
					t.Errorf("%s has %s", path, p[0])
				}
				if p[1] == "href" && strings.HasPrefix(p[2], below+"/auth/pages.css") || p[1] == "src" {
					f.Do("GET", p[2], "").Want(200)
				}
			}
		}
	}
	if found < 100 {
		t.Errorf("%d places were found", found)
	}
	f.Do("GET", "/api/v1x/login", "").Want(404)
	f.Do("GET", below+below+"/login", "").Want(404)
}

// So is every place that a header or a body names.
func TestRepliesBelowAPath(t *testing.T) {
	f := startBelow(t, "http")
	f.Register("ada@example.com", "a fine password")
	form := func(path, body, want string) {
		t.Helper()
		for _, prefix := range []string{"", below} {
			f.Do("POST", prefix+path, body, "Content-Type", "", "Content-Type",
				formType).Want(303).HasHeader("Location", want)
		}
	}
	form("/auth/email", "login=ada@example.com&password=a+fine+password", below+"/?validation=email")
	form("/auth/email", "login=none@example.com&password=a+fine+password", below+"/login-failed?reason=unknown")
	form("/auth/email/recovery", "login=", below+"/login-failed?reason=invalid")
	f.Do("POST", "/auth/email/recovery", "login=ada@example.com", "Content-Type", "", "Content-Type",
		formType).Want(303).HasHeader("Location", below+"/recovery?mail=sent")
	form("/auth/logout", "", below+"/")
	f.Do("GET", "/auth/email/callback?login=a@example.com&token=x", "").Want(302).HasHeader("Location",
		below+"/login-failed?reason=token")
	f.Do("GET", "/auth", "").Want(200)
	if text := f.Do("GET", below+"/auth", "").Text; !strings.Contains(text,
		`{"name":"email","url":"`+below+`/auth/email"}`) {
		t.Error(text)
	}

	for _, prefix := range []string{"", below} {
		r := f.Do("POST", prefix+"/books", `{"title":"Emma"}`).Want(201)
		at := r.Header.Get("Location")
		if !strings.HasPrefix(at, below+"/books/") {
			t.Errorf("Location: %s", at)
		}
		f.Do("GET", at, "").Want(200)
		f.Do("GET", strings.TrimPrefix(at, below), "").Want(200)
	}
	list := f.Do("GET", "/books?limit=1", "").Want(200)
	link := list.Header.Get("Link")
	if !strings.HasPrefix(link, "<"+below+"/books?cursor=") {
		t.Errorf("Link: %s", link)
	}
	next, _, _ := strings.Cut(strings.TrimPrefix(link, "<"), ">")
	f.Do("GET", next, "").Want(200)
	if batch := f.Do("POST", below+"/batch",
		`{"operations":[{"method":"POST","path":"/books","body":{"title":"x"}}]}`).Want(200).Text; !strings.Contains(
		batch, `"Location":"`+below+`/books/`) {
		t.Error(batch)
	}
	for _, path := range []string{"/livez", below + "/livez", below + "/healthz"} {
		f.Do("GET", path, "").Want(200)
	}
}

// The path of the base URL is after the name of a well-known URI (RFC 8414); through a proxy that passes on no more
// than what is below that path, it is before it.
func TestTheMetadataOfAnIssuerWithAPath(t *testing.T) {
	f := startBelow(t, "https")
	for _, path := range []string{"/.well-known/oauth-authorization-server" + below,
		below + "/.well-known/oauth-authorization-server"} {
		var m map[string]any
		f.Do("GET", path, "").Want(200).JSON(&m)
		issuer := "https://localhost" + below
		if m["issuer"] != issuer || m["authorization_endpoint"] != issuer+"/auth/authorize" ||
			m["token_endpoint"] != issuer+"/auth/token" {
			t.Errorf("%s: %v", path, m)
		}
	}
}

// Over http cookies are for the path alone; over https __Host- demands that they are for all.
func TestCookiesBelowAPath(t *testing.T) {
	for scheme, want := range map[string]string{"http": "belfry " + below, "https": "__Host-belfry /"} {
		f := startBelow(t, scheme)
		f.Register("ada@example.com", "a fine password")
		r := f.Do("POST", "/auth/email", apitest.Ada).Want(204)
		for _, c := range r.Cookies() {
			if name, path, _ := strings.Cut(want, " "); !strings.HasPrefix(c.Name, name) || c.Path != path {
				t.Errorf("%s: %s for %s", scheme, c.Name, c.Path)
			}
		}
		name, _, _ := strings.Cut(want, " ")
		gone := f.Do("DELETE", "/auth", "", "Cookie", name+"="+apitest.Token(r)).Want(204).Cookies()
		if len(gone) != 1 || gone[0].MaxAge >= 0 || gone[0].Path != r.Cookies()[0].Path {
			t.Errorf("%s: %v", scheme, gone)
		}
	}
}

// The rule of an API key sees the path within belfry, however a proxy passes it on.
func TestRulesOfKeysSeePathsWithin(t *testing.T) {
	f := startBelow(t, "http")
	token := f.Register("ada@example.com", "a fine password")
	var key struct{ Token string }
	f.Do("POST", "/auth/keys", `{"name":"k","password":"a fine password","rule":"path.startsWith('/books')"}`,
		"Authorization", "Bearer "+token).Want(201).JSON(&key)
	for path, status := range map[string]int{"/books": 200, below + "/books": 200, "/authors/x": 403,
		below + "/authors/x": 403} {
		f.Do("GET", path, "", "Authorization", "Bearer "+key.Token).Want(status)
	}
}

// Browsers send several cookies of one name, set for other paths or by other servers of the host: the first valid one
// counts.
func TestTheFirstValidCookieOfANameCounts(t *testing.T) {
	f := apitest.StartLogin(t, 1)[0]
	ada, bob := f.Register("ada@example.com", "a fine password"), f.Register("bob@example.com", "another password")
	ended := f.Register("eve@example.com", "the third password")
	f.Do("DELETE", "/auth", "", "Authorization", "Bearer "+ended).Want(204)
	who := func(token string) string { return f.Me(token).Want(200).Text }
	for cookies, want := range map[string]string{
		"belfry=" + ended + "; belfry=" + ada:                            who(ada),
		"belfry=; belfry=x; belfry=" + bob:                               who(bob),
		"belfry=" + ada + "; belfry=" + bob:                              who(ada),
		`belfry="x; other=1; belfry=` + bob:                              who(bob),
		strings.Repeat("belfry="+ended+"; ", 3) + "belfry=" + ada:        who(ada),
		strings.Repeat("belfry="+ended+"; ", 4) + "belfry=" + ada:        "", // no request tries all that it could have
		"belfry=" + ended + "; xbelfry=" + ada + "; belfryx=" + ada:      "",
		"belfry-device=" + ada + "; belfry=" + ended + "; Belfry=" + ada: "",
	} {
		r := f.Do("GET", "/auth/me", "", "Cookie", cookies)
		if got := r.Text; want == "" && r.StatusCode != http.StatusUnauthorized || want != "" && got != want {
			t.Errorf("%s: %s, want %s", cookies, got, want)
		}
	}
}

// Who logs out is not logged in by another cookie of the browser then.
func TestALogoutEndsTheSessionsOfAllCookies(t *testing.T) {
	f := apitest.StartLogin(t, 1)[0]
	ada, bob, eve := f.Register("ada@example.com", "a fine password"),
		f.Register("bob@example.com", "another password"), f.Register("eve@example.com", "the third password")
	cookies := "belfry=" + ada + "; belfry=x; belfry=" + bob
	// Of a program, whose session alone ends.
	f.Do("DELETE", "/auth", "", "Authorization", "Bearer "+eve, "Cookie", cookies).Want(204)
	f.Me(eve).Want(401)
	f.Do("GET", "/auth/me", "", "Cookie", cookies).Want(200)
	f.Do("DELETE", "/auth", "", "Cookie", cookies).Want(204)
	for _, token := range []string{ada, bob} {
		f.Me(token).Want(401)
	}
	f.Do("GET", "/auth/me", "", "Cookie", cookies).Want(401)
}

// Two servers on one host have cookies of different names, whatever their ports are. After a change the name before is
// read for as long as a session lasts.
func TestTheNameOfTheCookie(t *testing.T) {
	now := time.Now()
	for scheme, prefix := range map[string]string{"http": "", "https": "__Host-"} {
		until := now.Add(time.Hour)
		clock := now
		f := apitest.StartLogin(t, 1, func(o *account.Options) {
			o.BaseURL, o.Cookie, o.FormerCookies = scheme+"://belfry.example.org", "shop",
				[]sessions.FormerCookie{{Name: "belfry", Until: until}, {Name: "old", Until: now.Add(-time.Hour)}}
			o.Now = func() time.Time { return clock }
		})[0]
		r := f.Do("POST", "/auth/email",
			`{"register":true,"login":"ada@example.com","password":"a fine password"}`).Want(204)
		token := ""
		for _, c := range r.Cookies() {
			if c.Name == prefix+"shop" {
				token = c.Value
			} else if !strings.HasPrefix(c.Name, prefix+"shop-") {
				t.Errorf("a cookie %s", c.Name)
			}
		}
		me := f.Me(token).Want(200).Text
		for name, status := range map[string]int{"shop": 200, "belfry": 200, "old": 401, "other": 401} {
			f.Do("GET", "/auth/me", "", "Cookie", prefix+name+"="+token).Want(status)
		}
		if got := f.Do("GET", "/auth/me", "", "Cookie",
			prefix+"belfry=x; "+prefix+"shop="+token).Want(200).Text; got != me {
			t.Error(got)
		}
		clock = until
		f.Do("GET", "/auth/me", "", "Cookie", prefix+"belfry="+token).Want(401)
		f.Do("GET", "/auth/me", "", "Cookie", prefix+"shop="+token).Want(200)
		// The other server's cookie stays.
		for _, c := range f.Do("DELETE", "/auth", "", "Cookie",
			prefix+"belfry=x; "+prefix+"shop="+token).Want(204).Cookies() {
			if !strings.HasPrefix(c.Name, prefix+"shop") {
				t.Errorf("%s is removed", c.Name)
			}
		}
	}
}
