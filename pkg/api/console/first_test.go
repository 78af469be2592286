package console_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"belfry/pkg/account"
	"belfry/pkg/account/admin"
	"belfry/pkg/api"
	"belfry/pkg/api/apitest"
	"belfry/pkg/api/console"
	"belfry/pkg/object"
	"belfry/pkg/store/policy"
)

// startEmpty is start without users; it returns the token of a link for the first admin, too.
func startEmpty(t *testing.T, change ...any) (*fixture, string) {
	t.Helper()
	admins, problems := policy.CompileUserRule("user.admin == true")
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	o := console.Options{Objects: &console.Objects{}}
	change = append(change, func(a *account.Options) { a.Admins = admins }, func(a *api.Options) { a.Console = &o })
	f := &fixture{Front: apitest.StartLogin(t, 1, change...)[0]}
	token, _, err := f.Auth.FirstAdmin.Offer(t.Context())
	f.Must(err)
	return f, token
}

// first is the form for the first admin.
func first(token, login, password string) string {
	return url.Values{"token": {token}, "login": {login}, "password": {password}}.Encode()
}

func TestTheFirstAdminIsMadeOnAPage(t *testing.T) {
	t.Parallel()
	// Also without login by e-mail: the console has one for admins.
	f, token := startEmpty(t, func(o *account.Options) { o.Email, o.Passwords.Common = nil, true })
	page := is(t, f.get("", "/console/first?token="+token), http.StatusOK)
	shows(t, page, `value="`+token+`"`, `for="login"`, `for="password"`, `autocomplete="new-password"`)
	page.HasHeader("Cache-Control", "no-store").HasHeader("Referrer-Policy", "same-origin")

	for _, c := range []struct{ login, password, says string }{
		{"ada", "a fine password", "expected an address"}, {"ada@example.com", "short", "must have 8 to 1024 bytes"},
		{"ada@example.com", "football", "is one of the most common passwords: choose another"}, {"", "", "is missing"},
	} {
		r := is(t, f.post("", "/console/first", first(token, c.login, c.password)), http.StatusBadRequest)
		shows(t, r, c.says, `value="`+token+`"`, `value="`+c.login+`"`)
		if strings.Contains(r.Text, ">/password<") || strings.Contains(r.Text, ">/login<") {
			t.Errorf("the page has a pointer for programs: %s", r.Text)
		}
		if c.password != "" && strings.Contains(r.Text, c.password) {
			t.Error("the page repeats the password")
		}
	}
	r := f.post("", "/console/first", first(token, "Ada@example.com", "a fine password"))
	leads(t, r, "/console")
	cookie := r.Cookies()[0]
	if cookie.Name != "belfry" || !cookie.HttpOnly || cookie.SameSite != http.SameSiteLaxMode {
		t.Errorf("cookie %+v", cookie)
	}
	shows(t, is(t, f.get(cookie.Value, "/console/objects"), http.StatusOK), "Objects")

	// Replayed, by whomever.
	for _, session := range []string{"", cookie.Value} {
		is(t, f.get(session, "/console/first?token="+token), http.StatusForbidden)
		r := is(t, f.post(session, "/console/first", first(token, "eve@example.com", "a fine password")),
			http.StatusForbidden)
		if len(r.Cookies()) > 0 && r.Cookies()[0].Name == "belfry" {
			t.Error("a session for a link that was used")
		}
	}
	is(t, f.post(cookie.Value, "/console/logout", ""), http.StatusSeeOther)
	shows(t, is(t, f.get("", "/console/login"), http.StatusOK), "login by e-mail is not configured")
	r = is(t, f.post("", "/console/login", "login=ada@example.com&password=wrong"), http.StatusForbidden)
	shows(t, r, "the login or the password is wrong, or the user is not an admin")
	leads(t, f.post("", "/console/login", "login=ada@example.com&password=a+fine+password"), "/console")
	for _, line := range f.Logs.Lines() {
		if strings.Contains(line, token) || strings.Contains(line, "a fine password") {
			t.Errorf("the log has a secret: %s", line)
		}
	}
}

func TestALinkForTheFirstAdminTakesNothingFromOtherPagesAndStrangers(t *testing.T) {
	t.Parallel()
	f, token := startEmpty(t, func(o *account.Options) { o.Limits.Address = 20 })
	for _, headers := range [][]string{{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site"},
		{"Origin", "https://evil.example.org"}, {"Origin", "null"}} {
		r := is(t, f.post("", "/console/first", first(token, "eve@example.com", "a fine password"), headers...),
			http.StatusForbidden)
		r.HasHeader("Set-Cookie", "")
	}
	for _, wrong := range []string{"", "x", strings.Repeat("A", 43), token + "A", strings.ToLower(token),
		"%22%3E%3Cscript%3E"} {
		r := is(t, f.get("", "/console/first?token="+wrong), http.StatusForbidden)
		shows(t, r, "the link is wrong, was used, or has expired", "belfry user create ADDRESS --admin")
		if strings.Contains(r.Text, "<script>") {
			t.Error("the token is not escaped")
		}
		is(t, f.post("", "/console/first", first(wrong, "eve@example.com", "a fine password")), http.StatusForbidden)
	}
	limited := false
	for range 20 {
		limited = limited || f.get("", "/console/first?token=wrong").StatusCode == http.StatusTooManyRequests
	}
	if !limited {
		t.Error("tokens can be guessed without a limit")
	}
}

func TestALinkForTheFirstAdminEndsWithAnAdminWhoIsMadeOtherwise(t *testing.T) {
	t.Parallel()
	f, token := startEmpty(t)
	is(t, f.get("", "/console/first?token="+token), http.StatusOK)
	_, err := f.Auth.Admin.CreateUser(t.Context(),
		admin.NewUser{Login: "root@example.com", Fields: object.Object{}, Admin: true})
	f.Must(err)
	is(t, f.get("", "/console/first?token="+token), http.StatusForbidden)
	is(t, f.post("", "/console/first", first(token, "eve@example.com", "a fine password")), http.StatusForbidden)
}

// The link is opened again, or the form is sent again: by the browser that has made the first admin, and by others.
func TestTheLinkOfTheFirstAdminIsUsedTwice(t *testing.T) {
	t.Parallel()
	f, token := startEmpty(t, func(o *account.Options) { o.Limits.Address = 20 })
	opened := is(t, f.get("", "/console/first?token="+token), http.StatusOK)
	if len(opened.Cookies()) != 1 || opened.Cookies()[0].Name != "belfry-once" {
		t.Fatalf("cookies %v", opened.Cookies())
	}
	once := []string{"Cookie", "belfry-once=" + opened.Cookies()[0].Value}
	leads(t, f.post("", "/console/first", first(token, "ada@example.com", "a fine password"), once...), "/console")
	for range 15 { // a repetition is no guess
		for name, r := range map[string]apitest.Reply{
			"the link, by the same browser": f.get("", "/console/first?token="+token, once...),
			"the form, by the same browser": f.post("", "/console/first",
				first(token, "ada@example.com", "a fine password"), once...),
		} {
			if leads(t, r, "/console"); len(r.Cookies()) > 0 {
				t.Errorf("%s: cookies %v", name, r.Cookies())
			}
		}
		for name, r := range map[string]apitest.Reply{
			"the link": f.get("", "/console/first?token="+token),
			"the form": f.post("", "/console/first", first(token, "eve@example.com", "a fine password")),
		} {
			shows(t, is(t, r, http.StatusForbidden), "this link was used before: there is a first admin")
			if len(r.Cookies()) > 0 || strings.Contains(r.Text, "ada@") {
				t.Errorf("%s: cookies %v, %s", name, r.Cookies(), r.Text)
			}
		}
	}
}
