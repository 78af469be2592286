package login_test

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"

	"belfry/config"
	"belfry/pkg/account"
	"belfry/pkg/account/method/passkeys"
	"belfry/pkg/api/apitest"
	"belfry/test/kit/authenticator"
)

const ownOrigin = "http://belfry.example.org"

func withPasskeys(o *account.Options) {
	o.Passkeys = &config.Passkeys{RPID: "belfry.example.org", RPName: "Belfry", Origins: []string{ownOrigin}}
	o.Redirects = []string{"https://app.example.net/in"}
}

// challenge asks for a challenge, and returns it with its cookie.
func challenge(f *apitest.Front, path string, header ...string) (options []byte, cookie string) {
	f.Helper()
	r := f.Do("POST", path, "", header...).Want(200).HasHeader("Cache-Control", "no-store")
	for _, c := range r.Cookies() {
		if strings.HasPrefix(c.Name, "belfry-passkey-") && c.HttpOnly && c.MaxAge == 300 {
			return []byte(r.Text), c.Name + "=" + c.Value
		}
	}
	f.Fatalf("no cookie: %v", r.Header)
	return nil, ""
}

func bodyOf(credential json.RawMessage, more string) string {
	return `{"credential":` + string(credential) + more + `}`
}

func TestPasskeysOverHTTP(t *testing.T) {
	f := apitest.StartLogin(t, 1, withPasskeys)[0]
	token := f.Register("ada@example.com", "a fine password")
	bearer := []string{"Authorization", "Bearer " + token}
	if r := f.Do("GET", "/auth", "").Want(200); !strings.Contains(r.Text, `{"name":"passkey","url":"/auth/passkey"}`) {
		t.Errorf("providers: %s", r.Text)
	}
	c := authenticator.New(t, authenticator.ES256, ownOrigin)
	options, cookie := challenge(f, "/auth/passkeys/registration", bearer...)
	if strings.Contains(string(options), "secret") {
		t.Errorf("a script reads the secret: %s", options)
	}
	var added passkeys.Info
	body := bodyOf(c.Create(options), `,"name":"Laptop"`)
	f.Do("POST", "/auth/passkeys", body, bearer...).Want(403) // without the cookie
	f.Do("POST", "/auth/passkeys", body, append(bearer, "Cookie", cookie)...).Want(201).JSON(&added)
	f.Do("POST", "/auth/passkeys", body, append(bearer, "Cookie", cookie)...).Want(403)
	if added.Name != "Laptop" || added.UUID != authenticator.Encode(c.ID)+"_passkey" {
		t.Errorf("added %+v", added)
	}
	f.Do("POST", "/auth/passkeys/registration", "").Want(401)
	f.Do("PATCH", "/auth/passkeys/"+added.UUID, `{"name":"Phone"}`, bearer...).Want(200).JSON(&added)
	f.Do("PATCH", "/auth/passkeys/"+added.UUID, `{"name":""}`, bearer...).Want(400)
	f.Do("PATCH", "/auth/passkeys/ada@example.com_email", `{"name":"x"}`, bearer...).Want(404)
	r := f.Do("GET", "/auth/passkeys", "", bearer...).Want(200).HasHeader("Cache-Control", "no-store")
	if !strings.Contains(r.Text, `"name":"Phone"`) || strings.Contains(r.Text, "publicKey") {
		t.Errorf("passkeys: %s", r.Text)
	}

	// A browser logs in with its cookie, a program with the secret.
	options, cookie = challenge(f, "/auth/passkey/options")
	in := apitest.Token(f.Do("POST", "/auth/passkey", bodyOf(c.Get(options), ""), "Cookie", cookie).Want(204))
	f.Me(in).Want(200)
	var program struct{ Secret string }
	r = f.Do("POST", "/auth/passkey/options", "", "Prefer",
		"return=representation").Want(200).HasHeader("Preference-Applied", "return=representation")
	r.JSON(&program)
	var session struct{ Token string }
	f.Do("POST", "/auth/passkey", bodyOf(c.Get([]byte(r.Text)), `,"secret":"`+program.Secret+`"`), "Prefer",
		"return=representation").Want(200).JSON(&session)
	f.Me(session.Token).Want(200)

	// What is no answer.
	for _, body := range []string{`{}`, `{"credential":null}`, `{"credential":7}`, `{"credential":[]}`,
		`{"credential":{}}`, `{"credential":"x"}`,
		`{"credential":{"id":"AA","rawId":"AA","type":"public-key","response":{}}}`} {
		f.Do("POST", "/auth/passkey", body).Want(400)
		f.Do("POST", "/auth/passkeys", body, bearer...).Want(400)
	}
	f.Do("POST", "/auth/passkey", `{"credential":"`+strings.Repeat("x", 70_000)+`"}`).Want(413)
	options, cookie = challenge(f, "/auth/passkey/options")
	f.Do("POST", "/auth/passkey",
		bodyOf(c.Get(options, func(y *authenticator.Ceremony) { y.Origin = "http://evil.example" }), ""), "Cookie",
		cookie).Want(403)

	// Forms.
	const none, form = "", formType
	options, cookie = challenge(f, "/auth/passkey/options")
	r = f.Do("POST", "/auth/passkey", url.Values{"credential": {string(c.Get(options))}}.Encode(), "Content-Type", none,
		"Content-Type", form, "Cookie", cookie).Want(303)
	r.HasHeader("Location", "/in?validation=passkey")
	f.Me(apitest.Token(r)).Want(200)
	f.Do("POST", "/auth/passkey", "credential=x", "Content-Type", none, "Content-Type",
		form).Want(303).HasHeader("Location", "/out?reason=invalid")
	f.Do("POST", "/auth/passkeys/"+added.UUID, "name=Ring",
		append(bearer, "Content-Type", none, "Content-Type", form)...).Want(303).HasHeader("Location",
		"/in?outcome=passkey-renamed")
	f.Do("POST", "/auth/passkeys/"+added.UUID, "name=+",
		append(bearer, "Content-Type", none, "Content-Type", form)...).Want(303).HasHeader("Location",
		"/in?reason=invalid")
	f.Do("POST", "/auth/passkeys/"+added.UUID, "remove=true",
		append(bearer, "Content-Type", none, "Content-Type", form)...).Want(303).HasHeader("Location",
		"/in?outcome=passkey-removed")
	f.Do("DELETE", "/auth/idents/"+added.UUID, "", bearer...).Want(404)
	options, cookie = challenge(f, "/auth/passkey/options")
	f.Do("POST", "/auth/passkey", bodyOf(c.Get(options), ""), "Cookie", cookie).Want(403)
}

// A passkey logs in for an application as a password does.
func TestAPasskeyLogsInForAnApplication(t *testing.T) {
	f := apitest.StartLogin(t, 1, withPasskeys)[0]
	bearer := []string{"Authorization", "Bearer " + f.Register("ada@example.com", "a fine password")}
	c := authenticator.New(t, authenticator.ES256, ownOrigin)
	options, cookie := challenge(f, "/auth/passkeys/registration", bearer...)
	f.Do("POST", "/auth/passkeys", bodyOf(c.Create(options), ""), append(bearer, "Cookie", cookie)...).Want(201)
	request := url.Values{
		"response_type": {"code"}, "redirect_uri": {"https://app.example.net/in"}, "code_challenge_method": {"S256"},
		"state": {"s"}, "code_challenge": {"E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"},
	}.Encode()
	page := f.Do("GET", "/auth/authorize?"+request, "").Want(200)
	if policy := page.Header.Get("Content-Security-Policy"); !strings.HasSuffix(policy,
		"; script-src 'self'; connect-src 'self'") ||
		!strings.Contains(page.Text, `action="/auth/passkey" data-options="/auth/passkey/options"`) ||
		!strings.Contains(page.Text, `<script src="/auth/passkey.js" defer>`) {
		t.Errorf("%s: %s", policy, page.Text)
	}
	r := f.Do("POST", "/auth/passkey", url.Values{"authorize": {request}, "credential": {"x"}}.Encode(), "Content-Type",
		"", "Content-Type", formType).Want(303)
	if to := r.Header.Get("Location"); !strings.HasPrefix(to, "/auth/authorize?") ||
		!strings.Contains(to, "reason=invalid") {
		t.Errorf("a wrong answer leads to %s", to)
	}
	options, cookie = challenge(f, "/auth/passkey/options")
	body := url.Values{"authorize": {request}, "credential": {string(c.Get(options))}}.Encode()
	r = f.Do("POST", "/auth/passkey", body, "Content-Type", "", "Content-Type", formType, "Cookie", cookie).Want(303)
	if to, err := url.Parse(r.Header.Get("Location")); err != nil || to.Host != "app.example.net" ||
		to.Query().Get("code") == "" || to.Query().Get("state") != "s" {
		t.Errorf("to %s", r.Header.Get("Location"))
	}
}

func TestWithoutPasskeysThereAreNoRoutes(t *testing.T) {
	f := apitest.StartLogin(t, 1)[0]
	f.Do("POST", "/auth/passkey", "{}").Want(404)
	f.Do("POST", "/auth/passkey/options", "").Want(404)
}
