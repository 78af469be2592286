package login_test

import (
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"belfry/pkg/account"
	"belfry/pkg/api"
	"belfry/pkg/api/apitest"
	"belfry/pkg/api/login"
)

// proxies makes a front trust the proxies of a network.
func proxies(t *testing.T, network string) func(*api.Options) {
	t.Helper()
	return func(o *api.Options) {
		if network != "" {
			o.Proxies = []netip.Prefix{netip.MustParsePrefix(network)}
		}
	}
}

const formType = "application/x-www-form-urlencoded"

func TestAuthBodies(t *testing.T) {
	f := apitest.StartLogin(t, 1)[0]
	f.Register("ada@example.com", "a fine password")
	for _, c := range []struct {
		body, kind string
		want       int
		pointer    string
	}{
		{apitest.Ada, "", 204, ""},
		{apitest.Ada, "application/json; charset=utf-8", 204, ""},
		{`{"email":"ada@example.com","password":"a fine password"}`, "", 204, ""},
		{`{"login":" ada@example.com\n","password":"a fine password"}`, "", 204, ""},
		{`{"login":"","email":"ada@example.com","password":"a fine password"}`, "", 204, ""},
		{`{"login":null,"email":"ada@example.com","password":"a fine password","token":null,"register":null}`, "", 204,
			""},
		{`{"login":"ada@example.com","password":"a fine password","register":false}`, "", 204, ""},
		{`{"login":"ada@example.com","password":"a fine password","register":"0"}`, "", 204, ""},
		{`{"login":"ada@example.com","password":"a fine password","register":1}`, "", 400, "/register"},
		{`{"login":"ada@example.com","password":"a fine password","register":["true"]}`, "", 400, "/register"},
		{`{"login":"ada@example.com","password":12345678}`, "", 400, "/password"},
		{`{"login":["ada@example.com"],"password":"a fine password"}`, "", 400, "/login"},
		{`{"login":"ada@example.com","email":{},"password":"a fine password"}`, "", 400, "/email"},
		{`{"login":"ada@example.com","password":"a fine password","token":true}`, "", 400, "/token"},
		{`{"login":"ada@example.com","password":""}`, "", 400, "/password"},
		{`{"login":"   ","password":"a fine password"}`, "", 400, "/login"},
		{`{"Login":"ada@example.com","password":"a fine password"}`, "", 400, "/login"},
		{`{"login":"ada@example.com","login":"ada@example.com","password":"a fine password"}`, "", 400, ""},
		{`"ada@example.com"`, "", 400, ""}, {`[]`, "", 400, ""}, {`null`, "", 400, ""}, {``, "", 400, ""},
		{`{`, "", 400, ""},
		{apitest.Ada, "text/plain", 415, ""}, {apitest.Ada, "multipart/form-data; boundary=x", 415, ""},
		{apitest.Ada, "application/json; charset=latin1", 415, ""},
		{`{"login":"` + strings.Repeat("x", 65<<10) + `"}`, "", 413, ""},
	} {
		headers := []string{}
		if c.kind != "" {
			headers = []string{"Content-Type", "", "Content-Type", c.kind}
		}
		r := f.Do("POST", "/auth/email", c.body, headers...)
		r.Want(c.want)
		if c.pointer != "" && (len(r.Problem().Errors) != 1 || r.Problem().Errors[0].Pointer != c.pointer) {
			t.Errorf("%s: %s", c.body, r.Text)
		}
	}
}

// HTML forms, and the redirects of their browser.
func TestAuthForms(t *testing.T) {
	f := apitest.StartLogin(t, 1, func(a *login.Options) {
		a.SuccessRedirect, a.FailureRedirect = "https://app.example.org/in?a=b#c", "/out?x"
	}, func(o *account.Options) {
		o.Limits.Account, o.Now = 2, slow()
	})[0]
	const in = "https://app.example.org/in?a=b&validation=email#c"
	for _, c := range []struct{ body, want string }{
		{"register=on&login=ada%40example.com&password=a+fine+password&name=Ada%0d%0aX:+y", in},
		{"login=ada%40example.com&password=a+fine+password", in},
		{"login=ada%40example.com&password=a+fine+password&login=bob@example.com", in},
		{"register=1&login=ada%40example.com&password=a+fine+password", "/out?reason=taken&x="},
		{"login=bob%40example.com&password=a+fine+password", "/out?reason=unknown&x="},
		{"login=ada%40example.com&password=a+wrong+password", "/out?reason=denied&x="},
		{"login=ada%40example.com&password=a+wrong+password", "/out?reason=denied&x="},
		{"login=ada%40example.com&password=a+fine+password", "/out?reason=limited&x="},
		{"login=ada%40example.com", "/out?reason=invalid&x="},
		{"register=maybe&login=carl%40example.com&password=a+fine+password", "/out?reason=invalid&x="},
		{"login=%zz", "/out?reason=invalid&x="},
		{"login=" + strings.Repeat("x", 65<<10), "/out?reason=invalid&x="},
	} {
		r := f.Do("POST", "/auth/email", c.body, "Content-Type", "", "Content-Type", formType).Want(303)
		r.HasHeader("Location", c.want).HasHeader("Referrer-Policy", "no-referrer").HasHeader("Cache-Control",
			"no-store")
		if set := len(r.Cookies()) > 0; set != (c.want == in) {
			t.Errorf("%.80s: cookies %v", c.body, r.Cookies())
		}
	}
	// Only who knows the password learns that the account is disabled.
	f.Do("POST", "/auth/email", "register=on&login=eve%40example.com&password=a+fine+password", "Content-Type", "",
		"Content-Type", formType).Want(303)
	disabled, err := f.Auth.Admin.FindUser(t.Context(), "eve@example.com")
	f.Must(err)
	_, err = f.Auth.Admin.SetDisabled(t.Context(), disabled.UUID, true)
	f.Must(err)
	for password, reason := range map[string]string{"a+fine+password": "disabled", "a+wrong+password": "denied"} {
		f.Do("POST", "/auth/email", "login=eve%40example.com&password="+password, "Content-Type", "", "Content-Type",
			formType).
			Want(303).HasHeader("Location", "/out?reason="+reason+"&x=")
	}
	// The names of media types are the same in either case.
	f.Do("POST", "/auth/email", "login=bob%40example.com&password=a+fine+password", "Content-Type", "", "Content-Type",
		"Application/X-WWW-Form-Urlencoded; charset=UTF-8").
		Want(303).HasHeader("Location", "/out?reason=unknown&x=")
	// Fields that only JSON has, as text.
	session := f.Register("dora@example.com", "a fine password")
	f.Do("PUT", "/auth/email", "password=a+fine+password&newPassword=a+better+password", "Content-Type", "",
		"Content-Type", formType, "Authorization", "Bearer "+session).Want(204)
}

// A tampered link redirects to the page of failures, and none of its text reaches
// a header.
func TestLinksThatWereTamperedWith(t *testing.T) {
	f := apitest.StartLogin(t, 1)[0]
	f.Register("ada@example.com", "a fine password")
	for _, query := range []string{
		"", "login=ada@example.com", "token=x", "login=ada@example.com&token=x",
		"login=%0d%0aSet-Cookie:+a=b&token=%0d%0a", "login=//evil.example.org&token=x",
		"login=ada@example.com&token=" + strings.Repeat("x", 4000), "%zz", "login=%00&token=%00", "login=%ff&token=%ff",
		"login[]=a&token[]=b",
	} {
		r := f.Do("GET", "/auth/email/callback?"+query, "").Want(302).HasHeader("Location", "/out?reason=token")
		if len(r.Cookies()) > 0 {
			t.Errorf("%s: cookies %v", query, r.Cookies())
		}
	}
}

// Requests that a page of another origin makes a browser send change nothing.
func TestForgery(t *testing.T) {
	f := apitest.StartLogin(t, 1, func(a *login.Options) {
		a.SuccessRedirect, a.TrustedOrigins = "https://app.example.org/in", []string{"https://trusted.example.org"}
	})[0]
	session := f.Register("ada@example.com", "a fine password")
	own, err := url.Parse(f.URL)
	f.Must(err)
	for _, c := range []struct {
		site, origin string
		fine         bool
	}{
		{"", "", true}, {"same-origin", "", true}, {"none", "", true}, {"cross-site", "", false},
		{"same-site", "", false}, {"garbage", "", false},
		{"", "http://" + own.Host, true}, {"", "https://" + own.Host, true}, {"", "http://evil.example.org", false},
		{"", "null", false},
		{"cross-site", "https://trusted.example.org", true}, {"same-site", "https://app.example.org", true},
		{"cross-site", "http://belfry.example.org", true},
		{"cross-site", "https://trusted.example.org.evil.org", false}, {"cross-site", "http://app.example.org", false},
		{"cross-site", "http://" + own.Host, false},
		{"same-origin", "http://evil.example.org", true}, // a header of the browser, which no page can set
	} {
		headers := []string{"Cookie", "belfry=" + session}
		if c.site != "" {
			headers = append(headers, "Sec-Fetch-Site", c.site)
		}
		if c.origin != "" {
			headers = append(headers, "Origin", c.origin)
		}
		for _, request := range []struct {
			method, path, body string
			want               int
		}{
			{"POST", "/books", `{}`, 201}, {"PUT", "/auth/email", `{"newPassword":"a better password"}`, 403},
			{"DELETE", "/auth/sessions/none", "", 404},
			{"POST", "/auth/email", apitest.Ada, 204}, {"DELETE", "/books/none", "", 404},
			{"PATCH", "/books/none", `{}`, 404},
		} {
			r := f.Do(request.method, request.path, request.body, headers...)
			refused := r.StatusCode == http.StatusForbidden && strings.Contains(r.Problem().Detail, "another origin")
			if refused == c.fine || c.fine && r.StatusCode != request.want {
				t.Errorf("%+v %+v: %d %s", c, request, r.StatusCode, r.Text)
			}
			if request.path == "/auth/email" && request.method == "POST" && c.fine {
				session = apitest.Token(r) // the one before ends
				headers[1] = "belfry=" + session
			}
		}
		f.Do("GET", "/auth/me", "", headers...).Want(200)
	}
}
