package console_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"belfry/config"
	"belfry/pkg/account"
	"belfry/pkg/account/method"
	"belfry/pkg/account/record"
	"belfry/pkg/api/apitest"
	"belfry/test/kit/authenticator"
)

const ownOrigin = "http://belfry.example.org"

func withPasskeys(o *account.Options) {
	o.Passkeys = &config.Passkeys{RPID: "belfry.example.org", RPName: "Belfry", Origins: []string{ownOrigin}}
}

// addPasskey adds a passkey in a session.
func (f *fixture) addPasskey(token string) *authenticator.Credential {
	f.Helper()
	session := f.client(token).Session
	c := authenticator.New(f.T, authenticator.ES256, ownOrigin)
	challenge, err := f.Auth.Passkeys.BeginRegistration(f.Context(), session)
	f.Must(err)
	_, err = f.Auth.Passkeys.Add(f.Context(), "Laptop",
		method.Signed{Credential: c.Create(challenge.Options), Secret: challenge.Secret}, session)
	f.Must(err)
	return c
}

// challenge asks for a challenge as the script does, and returns it with the cookies to answer it.
func (f *fixture) challenge(path string, cookies ...string) (options []byte, cookie string) {
	f.Helper()
	r := is(f.T, f.Do("POST", path, "{}", "Cookie", strings.Join(cookies, "; ")), http.StatusOK)
	for _, c := range r.Cookies() {
		if strings.HasPrefix(c.Name, "belfry-passkey-") && c.HttpOnly && c.MaxAge == 300 {
			return []byte(r.Text), strings.Join(append(cookies, c.Name+"="+c.Value), "; ")
		}
	}
	f.Fatalf("%s: no cookie: %v", path, r.Header)
	return nil, ""
}

func answer(credential []byte, next string) string {
	return url.Values{"type": {"passkey"}, "credential": {string(credential)}, "next": {next}}.Encode()
}

func TestAnAdminLogsInToTheConsoleByAPasskey(t *testing.T) {
	t.Parallel()
	f := startUsers(t, withPasskeys)
	const form, options = "/console/login/passkey", "/auth/passkey/options"
	shows(t, is(t, f.get("", "/console/login?next=/console/users"), http.StatusOK), `action="`+form+`"`,
		`data-options="`+options+`"`, `src="/auth/passkey.js"`)
	c, bobs := f.addPasskey(f.Admin), f.addPasskey(f.User)

	challenge, cookie := f.challenge(options)
	body := answer(c.Get(challenge), "/console/users")
	// Another browser.
	shows(t, is(t, f.post("", form, body), http.StatusForbidden), "start again", `action="`+form+`"`,
		`value="/console/users"`)
	is(t, f.post("", form, body, "Cookie", cookie, "Sec-Fetch-Site", "cross-site"), http.StatusForbidden)
	r := f.post("", form, body, "Cookie", cookie)
	leads(t, r, "/console/users")
	if me := f.client(apitest.Token(r)).Session; me.AAL != 2 || strings.Join(me.Methods, " ") != "passkey" {
		t.Errorf("the session is %+v", me)
	}
	is(t, f.post("", form, body, "Cookie", cookie), http.StatusForbidden) // replayed
	is(t, f.post("", form, "", "Cookie", cookie), http.StatusBadRequest)
	large := answer([]byte(strings.Repeat("x", 70_000)), "")
	is(t, f.post("", form, large, "Cookie", cookie), http.StatusRequestEntityTooLarge)
	// Whose other forms may be larger.
	is(t, f.post(f.Admin, "/console/step-up", large), http.StatusRequestEntityTooLarge)
	challenge, cookie = f.challenge(options)
	leads(t, f.post("", form, answer(c.Get(challenge), "https://evil.example.org/"), "Cookie", cookie), "/console")

	// Who is no admin is logged in, and gets no page.
	challenge, cookie = f.challenge(options)
	r = f.post("", form, answer(bobs.Get(challenge), ""), "Cookie", cookie)
	leads(t, r, "/console")
	is(t, f.get(apitest.Token(r), "/console/users"), http.StatusForbidden)
}

func TestAPasskeyIsTheSecondFactorAtTheConsole(t *testing.T) {
	t.Parallel()
	f := startUsers(t, withPasskeys)
	c, bobs := f.addPasskey(f.Admin), f.addPasskey(f.User)
	for _, token := range []string{f.Admin, f.User} {
		_, _, err := f.Auth.Enrollment.Confirm(t.Context(), record.FactorPasskey, "", f.client(token))
		f.Must(err)
	}
	cookie := f.logIn(ada, adasPassword, "")[1]
	shows(t, is(t, f.get("", secondURL, "Cookie", cookie), http.StatusOK), `data-options="`+secondURL+`/passkey"`,
		`src="/auth/passkey.js"`, "Use a recovery code")

	for _, other := range []string{"", "belfry=" + f.Admin} { // another browser, and one that is logged in
		r := is(t, f.Do("POST", secondURL+"/passkey", "{}", "Cookie", other), http.StatusUnauthorized)
		r.HasHeader("Content-Type", "application/problem+json")
	}
	challenge, _ := f.challenge(secondURL+"/passkey", cookie)
	is(t, f.post("", secondURL, answer(c.Get(challenge), ""), "Cookie", cookie), http.StatusForbidden)
	challenge, all := f.challenge(secondURL+"/passkey", cookie)
	shows(t, is(t, f.post("", secondURL, answer(bobs.Get(challenge), ""), "Cookie", all), http.StatusForbidden),
		`data-options="`+secondURL+`/passkey"`)
	challenge, all = f.challenge("/auth/passkey/options", cookie) // for a login, not for this
	is(t, f.post("", secondURL, answer(c.Get(challenge), ""), "Cookie", all), http.StatusForbidden)
	is(t, f.post("", secondURL, factor("passkey", "", ""), "Cookie", cookie), http.StatusBadRequest)
	challenge, all = f.challenge(secondURL+"/passkey", cookie)
	r := f.post("", secondURL, answer(c.Get(challenge), "/console/users"), "Cookie", all)
	leads(t, r, "/console/users")
	if me := f.client(apitest.Token(r)).Session; me.AAL != 2 || strings.Join(me.Methods, " ") != "password passkey" {
		t.Errorf("the session is %+v", me)
	}
}

// An admin with passkeys and neither a password nor a second factor proves who they are by a passkey, too.
func TestAnAdminStepsUpByAPasskey(t *testing.T) {
	t.Parallel()
	c := &clock{}
	f := startUsers(t, c.use, withPasskeys)
	passkey, bobs := f.addPasskey(f.Admin), f.addPasskey(f.User)
	c.advance(11 * time.Minute)
	shows(t, is(t, f.get(f.Admin, stepUpURL), http.StatusOK), `for="password"`, `data-options="`+stepUpURL+`/passkey"`,
		`src="/auth/passkey.js"`)
	for token, status := range map[string]int{"": http.StatusUnauthorized, f.User: http.StatusForbidden} {
		r := is(t, f.Do("POST", stepUpURL+"/passkey", "{}", "Cookie", "belfry="+token), status)
		r.HasHeader("Content-Type", "application/problem+json")
	}
	is(t, f.Do("POST", stepUpURL+"/passkey", "{}", "Cookie", "belfry="+f.Admin, "Sec-Fetch-Site", "cross-site"),
		http.StatusForbidden)
	challenge, cookie := f.challenge(stepUpURL+"/passkey", "belfry="+f.Admin)
	is(t, f.post("", stepUpURL, answer(bobs.Get(challenge), ""), "Cookie", cookie), http.StatusForbidden)
	challenge, cookie = f.challenge(stepUpURL+"/passkey", "belfry="+f.Admin)
	r := f.post("", stepUpURL, answer(passkey.Get(challenge), "/console/users"), "Cookie", cookie)
	leads(t, r, "/console/users")
	fresh := apitest.Token(r)
	if me := f.client(fresh).Session; me.AAL != 2 || strings.Join(me.Methods, " ") != "password passkey" {
		t.Errorf("the session is %+v", me)
	}
	f.Auth.Close() // waits for the end of the session that was replaced
	f.Me(f.Admin).Want(http.StatusUnauthorized)
}

func TestWithoutPasskeysTheConsoleAsksForNone(t *testing.T) {
	t.Parallel()
	f := startUsers(t)
	if page := is(t, f.get("", "/console/login"), http.StatusOK); strings.Contains(page.Text, "passkey") {
		t.Errorf("the page of the login: %s", page.Text)
	}
	for _, path := range []string{"/console/login/passkey", secondURL + "/passkey", stepUpURL + "/passkey"} {
		if r := f.post(f.Admin, path, ""); r.StatusCode != http.StatusNotFound &&
			r.StatusCode != http.StatusMethodNotAllowed {
			t.Errorf("%s: %d", path, r.StatusCode)
		}
	}
}
