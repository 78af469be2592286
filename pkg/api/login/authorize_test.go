package login_test

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"belfry/pkg/account"
	"belfry/pkg/account/oauth"
	"belfry/pkg/account/sessions"
	"belfry/pkg/api/apitest"
	"belfry/pkg/api/login"
	"belfry/pkg/errs"
	"belfry/pkg/object"
)

const (
	site     = "https://app.example.net/in"
	program  = "com.example.app:/in"
	loopback = "http://127.0.0.1:4711/in"
	verifier = "a-verifier-of-at-least-43-characters.0123456789~"
)

// askingNobody is a provider that knows the user without asking; the code says who, or what fails.
type askingNobody struct{}

func (askingNobody) Begin(_ context.Context, b oauth.AuthRequest) (oauth.Redirect, error) {
	return oauth.Redirect{URL: "https://provider.example.com/?state=" + url.QueryEscape(b.State)}, nil
}

func (askingNobody) Finish(_ context.Context, f oauth.Callback) (oauth.Identity, error) {
	switch who := f.Query.Get("code"); who {
	case "denied":
		return oauth.Identity{}, errs.New(errs.Denied, "SECRET")
	case "away":
		return oauth.Identity{}, errs.New(errs.Unavailable, "SECRET")
	case "broken":
		return oauth.Identity{}, errs.New(errs.Internal, "SECRET")
	default:
		return oauth.Identity{ID: who, Profile: object.Object{}}, nil
	}
}

// startApplications starts a front with redirects of applications.
func startApplications(t *testing.T, change ...any) *apitest.Front {
	t.Helper()
	return apitest.StartLogin(t, 1, append(change, func(o *account.Options) {
		o.Redirects = []string{site, program, "http://127.0.0.1/in"}
		o.Providers = map[string]oauth.Provider{"github": askingNobody{}}
	}, func(a *login.Options) { a.FailureRedirect = "/failed" })...)[0]
}

// asking is the query of an application that asks for a login.
func asking(redirect string, changes ...string) url.Values {
	sum := sha256.Sum256([]byte(verifier))
	q := url.Values{
		"response_type": {"code"}, "redirect_uri": {redirect}, "state": {"a state & more"},
		"code_challenge": {base64.RawURLEncoding.EncodeToString(sum[:])}, "code_challenge_method": {"S256"},
	}
	for i := 0; i < len(changes); i += 2 {
		if q.Set(changes[i], changes[i+1]); changes[i+1] == "" {
			q.Del(changes[i])
		}
	}
	return q
}

// landed returns the query with which a reply redirects to an application.
func landed(t *testing.T, r apitest.Reply, redirect string) url.Values {
	t.Helper()
	to := r.Header.Get("Location")
	rest, ok := strings.CutPrefix(to, redirect+"?")
	query, err := url.ParseQuery(rest)
	if !ok || err != nil {
		t.Fatalf("redirected to %s, want %s", to, redirect)
	}
	r.HasHeader("Cache-Control", "no-store").HasHeader("Referrer-Policy", "no-referrer")
	for _, c := range r.Cookies() {
		if c.Name == "belfry" {
			t.Errorf("a session of the browser: %v", c)
		}
	}
	return query
}

func submit(f *apitest.Front, q url.Values, password string, more ...string) apitest.Reply {
	form := url.Values{"authorize": {q.Encode()}, "login": {"ada@example.com"}, "password": {password}}
	return f.Do("POST", "/auth/email", form.Encode(),
		append([]string{"Content-Type", "", "Content-Type", formType}, more...)...)
}

func exchange(f *apitest.Front, code, redirect string, more ...string) apitest.Reply {
	form := url.Values{"grant_type": {"authorization_code"}, "code": {code}, "redirect_uri": {redirect},
		"code_verifier": {verifier}}
	return f.Do("POST", "/auth/token", form.Encode(),
		append([]string{"Content-Type", "", "Content-Type", formType}, more...)...)
}

// throughProvider goes from a page of belfry's to the provider and back, as a browser does.
func throughProvider(f *apitest.Front, q url.Values, who string, headers ...string) apitest.Reply {
	f.Helper()
	q.Set("provider", "github")
	begun := f.Do("GET", "/auth/authorize?"+q.Encode(), "", headers...).Want(302)
	to, err := url.Parse(begun.Header.Get("Location"))
	f.Must(err)
	if len(begun.Cookies()) != 1 {
		f.Fatalf("cookies: %v, to %s", begun.Cookies(), to)
	}
	cookie := begun.Cookies()[0]
	back := url.Values{"state": {to.Query().Get("state")}, "code": {who}}
	return f.Do("GET", "/auth/callback?"+back.Encode(), "", "Cookie", cookie.Name+"="+cookie.Value)
}

func TestAnApplicationLogsInWithACode(t *testing.T) {
	f := startApplications(t)
	f.Register("ada@example.com", "a fine password")
	own := []string{"Sec-Fetch-Site", "same-origin"}
	for _, redirect := range []string{site, program, loopback} {
		for name, reply := range map[string]apitest.Reply{
			"email":    submit(f, asking(redirect), "a fine password").Want(303),
			"provider": throughProvider(f, asking(redirect), "grace", own...).Want(302),
		} {
			query := landed(t, reply, redirect)
			if len(query) != 3 || query.Get("state") != "a state & more" || len(query.Get("code")) != 43 ||
				query.Get("iss") != "http://belfry.example.org" {
				t.Fatalf("%s: %v", name, query)
			}
			r := exchange(f, query.Get("code"), redirect).Want(200).HasHeader("Cache-Control",
				"no-store").HasHeader("Content-Type", "application/json").HasHeader("Set-Cookie", "")
			var got struct {
				Token   string `json:"access_token"`
				Type    string `json:"token_type"`
				Seconds int    `json:"expires_in"`
			}
			r.JSON(&got)
			if left := time.Duration(got.Seconds) * time.Second; got.Type != "Bearer" || left <= 0 ||
				left > sessions.SessionIdleTimeout {
				t.Errorf("%s: %s", name, r.Text)
			}
			f.Me(got.Token).Want(200)
			f.Do("GET", "/auth/me", "", "Authorization", "Bearer "+query.Get("code")).Want(401) // a code is no token
		}
	}
}

func TestAnExchangeRepliesTheTokenAsALoginDoes(t *testing.T) {
	f := startApplications(t)
	f.Register("ada@example.com", "a fine password")
	code := landed(t, submit(f, asking(site), "a fine password").Want(303), site).Get("code")
	body, err := json.Marshal(map[string]string{"grant_type": "authorization_code", "code": code, "redirect_uri": site,
		"code_verifier": verifier})
	f.Must(err)
	r := f.Do("POST", "/auth/token", string(body), "Prefer", prefer).Want(200).HasHeader("Preference-Applied", prefer)
	var got issued
	r.JSON(&got)
	if me := f.Me(got.Token).Want(200); me.Text != string(got.User) || got.Expires.IsZero() {
		t.Errorf("%s, and %s", r.Text, me.Text)
	}
	if len(r.Cookies()) != 0 {
		t.Errorf("cookies: %v", r.Cookies())
	}
}

// A program, or a page, can open the URL while the provider knows the user: without belfry's own page it
// would get a code without anybody noticing.
func TestALoginForAProgramIsAskedForByAPage(t *testing.T) {
	f := startApplications(t)
	for _, c := range []struct {
		name, redirect, provider string
		headers                  []string
		page                     bool
	}{
		{"a program opens it", program, "github", []string{"Sec-Fetch-Site", "none"}, true},
		{"a page of another origin opens it", loopback, "github", []string{"Sec-Fetch-Site", "cross-site"}, true},
		{"a page of a sibling opens it", loopback, "github", []string{"Sec-Fetch-Site", "same-site"}, true},
		{"without headers", program, "github", nil, true},
		{"a referer of another origin", program, "github",
			[]string{"Referer", "http://belfry.example.org.evil.example/"}, true},
		{"the page itself", program, "github", []string{"Sec-Fetch-Site", "same-origin"}, false},
		{"the page itself, in a browser without Sec-Fetch-Site", program, "github",
			[]string{"Referer", "http://belfry.example.org/auth/authorize"}, false},
		{"the page itself, at a name of hosts", program, "github", []string{"Referer", f.URL + "/auth/authorize"},
			false},
		{"no page, at that name", program, "github",
			[]string{"Sec-Fetch-Site", "cross-site", "Referer", f.URL + "/auth/authorize"}, true},
		{"for a site", site, "github", []string{"Sec-Fetch-Site", "cross-site"}, false},
		{"for a site without a provider", site, "", []string{"Sec-Fetch-Site", "cross-site"}, true},
		{"by e-mail", site, "email", nil, true},
	} {
		r := f.Do("GET", "/auth/authorize?"+asking(c.redirect, "provider", c.provider).Encode(), "", c.headers...)
		if c.page != (r.StatusCode == 200) {
			t.Errorf("%s: status %d", c.name, r.StatusCode)
		}
		if !c.page && !strings.HasPrefix(r.Header.Get("Location"), "https://provider.example.com/") {
			t.Errorf("%s: to %s", c.name, r.Header.Get("Location"))
		}
	}
}

func TestThePageOfALogin(t *testing.T) {
	f := startApplications(t)
	for redirect, action := range map[string]string{site: "https://app.example.net", program: "com.example.app:",
		loopback: "http:"} {
		hostile := asking(redirect, "state", `"><script>alert(1)</script>`)
		r := f.Do("GET", "/auth/authorize?"+hostile.Encode(), "").Want(200).HasHeader("Cache-Control",
			"no-store").HasHeader("X-Frame-Options", "DENY")
		r.HasHeader("Content-Security-Policy",
			"default-src 'none'; style-src 'self'; img-src 'self' data:; font-src 'self'; form-action 'self' "+action+
				"; frame-ancestors 'none'; base-uri 'none'; script-src 'self'")
		if strings.Contains(r.Text, "<script>") || strings.Count(r.Text, "<script") != 1 || !strings.Contains(r.Text, "Continue with GitHub") {
			t.Errorf("the page: %s", r.Text)
		}
	}
	r := f.Do("GET", "/auth/authorize?"+asking(site, "reason", "denied").Encode(), "").Want(200)
	if !strings.Contains(r.Text, "The e-mail address or the password is wrong") {
		t.Errorf("the page: %s", r.Text)
	}
	f.Do("GET", "/auth/pages.css", "").Want(200) // also without the other pages
	if r := f.Do("GET", "/auth/authorize?"+asking(site, "reason", "<b>SECRET").Encode(),
		"").Want(200); strings.Contains(r.Text, "SECRET") {
		t.Errorf("the page: %s", r.Text)
	}
}

func TestNoBrowserIsSentWhereNoRedirectIsConfigured(t *testing.T) {
	f := startApplications(t)
	f.Register("ada@example.com", "a fine password")
	for _, redirect := range []string{"", "https://evil.example/in", site + "/..",
		"https://app.example.net/in@evil.example", "javascript:alert(1)", "http://127.0.0.1:1@evil.example/in",
		program + "2"} {
		for name, r := range map[string]apitest.Reply{
			"authorize": f.Do("GET", "/auth/authorize?"+asking(redirect, "provider", "github").Encode(), "",
				"Sec-Fetch-Site", "same-origin"),
			"a form": submit(f, asking(redirect), "a fine password"),
		} {
			if r.Want(400).HasHeader("Location", ""); !strings.Contains(r.Problem().Detail, "redirect_uri") {
				t.Errorf("%s: %s", name, r.Text)
			}
		}
	}
	f.Do("GET", "/auth/authorize?redirect_uri=%zz", "").Want(400)
	plain := apitest.StartLogin(t, 1)[0]
	plain.Do("GET", "/auth/authorize?"+asking(site).Encode(), "").Want(404)
	plain.Do("POST", "/auth/token", `{}`).Want(404)
}

// What is wrong with a request is reported to the application, whose redirect is configured.
func TestAnApplicationIsToldWhatIsWrong(t *testing.T) {
	f := startApplications(t)
	f.Register("ada@example.com", "a fine password")
	for _, c := range []struct{ name, field, value, want string }{
		{"no PKCE", "code_challenge", "", "invalid_request"},
		{"plain", "code_challenge_method", "plain", "invalid_request"},
		{"a token", "response_type", "token", "unsupported_response_type"},
		{"an unknown provider", "provider", "gitlab", "invalid_request"},
	} {
		q := asking(site, c.field, c.value)
		query := landed(t, f.Do("GET", "/auth/authorize?"+q.Encode(), "").Want(302), site)
		if query.Get("error") != c.want || query.Get("error_description") == "" ||
			query.Get("state") != "a state & more" || query.Has("code") ||
			query.Get("iss") != "http://belfry.example.org" {
			t.Errorf("%s: %v", c.name, query)
		}
		if c.field != "provider" {
			if query := landed(t, submit(f, q, "a fine password").Want(303), site); query.Get("error") != c.want ||
				query.Has("code") {
				t.Errorf("%s, a form: %v", c.name, query)
			}
		}
	}
	for who, want := range map[string]string{"denied": "access_denied", "away": "temporarily_unavailable",
		"broken": "server_error"} {
		r := throughProvider(f, asking(site), who).Want(302)
		if query := landed(t, r, site); query.Get("error") != want || query.Get("state") != "a state & more" ||
			query.Get("iss") != "http://belfry.example.org" || strings.Contains(r.Header.Get("Location"), "SECRET") {
			t.Errorf("%s: %v", who, query)
		}
	}
	// A flow of another browser is not known: nothing says whom it is for.
	q := asking(site, "provider", "github")
	to, err := url.Parse(f.Do("GET", "/auth/authorize?"+q.Encode(), "").Want(302).Header.Get("Location"))
	f.Must(err)
	f.Do("GET", "/auth/callback?code=grace&state="+to.Query().Get("state"), "").Want(302).HasHeader("Location",
		"/failed?reason=state")
}

func TestAFailedFormReturnsToThePage(t *testing.T) {
	f := startApplications(t)
	f.Register("ada@example.com", "a fine password")
	for password, reason := range map[string]string{"a wrong password": "denied", "": "invalid"} {
		r := submit(f, asking(program), password).Want(303)
		to, err := url.Parse(r.Header.Get("Location"))
		f.Must(err)
		want := asking(program, "reason", reason)
		if to.Path != "/auth/authorize" || to.Query().Encode() != want.Encode() || len(r.Cookies()) != 1 {
			t.Fatalf("%q: to %s", password, to)
		}
		// The page has the address that was entered, once. No URL has it.
		kept := r.Cookies()[0]
		if !kept.HttpOnly || kept.MaxAge > 300 || strings.Contains(to.String(), "ada") {
			t.Errorf("%+v, %s", kept, to)
		}
		page := f.Do("GET", to.String(), "", "Cookie", kept.Name+"="+kept.Value).Want(200)
		if !strings.Contains(page.Text, `value="ada@example.com"`) || page.Cookies()[0].MaxAge >= 0 {
			t.Errorf("%v\n%s", page.Cookies(), page.Text)
		}
	}
	submit(f, asking(program), "a fine password", "Sec-Fetch-Site", "cross-site").Want(403)
	submit(f, asking(program), "a fine password", "Origin", "https://evil.example").Want(403)
	// The field is of forms alone: the JSON of a login or a registration may have one of this name.
	f.Do("POST", "/auth/email", `{"login":"ada@example.com","password":"a fine password","authorize":"x"}`).Want(204)
}

// The page says why a password that attackers know is refused.
func TestAWeakPasswordReturnsToThePage(t *testing.T) {
	f := startApplications(t, func(o *account.Options) { o.Passwords.Common = true })
	form := url.Values{"authorize": {asking(program).Encode()}, "login": {"ada@example.com"}, "password": {"football"},
		"register": {"true"}}
	r := f.Do("POST", "/auth/email", form.Encode(), "Content-Type", "", "Content-Type", formType).Want(303)
	to, err := url.Parse(r.Header.Get("Location"))
	f.Must(err)
	if want := asking(program, "reason", "common", "register", "true"); to.Path != "/auth/authorize" ||
		to.Query().Encode() != want.Encode() {
		t.Errorf("to %s", to)
	}
	for reason, says := range map[string]string{"common": "one of the most common passwords",
		"weak": "too easy to guess", "breached": "appears in data breaches"} {
		page := f.Do("GET", "/auth/authorize?"+asking(program, "reason", reason, "register", "true").Encode(),
			"").Want(200)
		if !strings.Contains(page.Text, says) {
			t.Errorf("%s: %s", reason, page.Text)
		}
	}
	// An application learns nothing of it.
	f.Do("POST", "/auth/email", `{"register":true,"login":"ada@example.com","password":"football"}`).Want(400)
}

func TestErrorsOfAnExchange(t *testing.T) {
	f := startApplications(t)
	f.Register("ada@example.com", "a fine password")
	code := func() string {
		return landed(t, submit(f, asking(site), "a fine password").Want(303), site).Get("code")
	}
	fails := func(name string, r apitest.Reply, want, secret string) {
		t.Helper()
		var got struct {
			Error       string
			Description string `json:"error_description"`
			Type        string
			Status      int
		}
		if r.StatusCode != 400 || r.Header.Get("Content-Type") != "application/json" ||
			r.Header.Get("Cache-Control") != "no-store" {
			t.Fatalf("%s: %d %v", name, r.StatusCode, r.Header)
		}
		r.JSON(&got)
		if got.Error != want || got.Description == "" || got.Type != "urn:belfry:problem:invalid" || got.Status != 400 {
			t.Errorf("%s: %s", name, r.Text)
		}
		if logged := strings.Join(f.Logs.Lines(), "\n"); secret != "" &&
			(strings.Contains(r.Text, secret) || strings.Contains(logged, secret)) {
			t.Errorf("%s: the code is in the reply or in the log: %s, %s", name, r.Text, logged)
		}
	}
	used := code()
	token := exchange(f, used, site).Want(200)
	fails("used", exchange(f, used, site), "invalid_grant", used)
	var first struct {
		Token string `json:"access_token"`
	}
	token.JSON(&first)
	f.Me(first.Token).Want(401)
	for name, c := range map[string]struct{ field, value, want string }{
		"another verifier": {"code_verifier", strings.Repeat("a", 43), "invalid_grant"},
		"another redirect": {"redirect_uri", program, "invalid_grant"},
		"another client":   {"client_id", "x", "invalid_grant"},
		"no verifier":      {"code_verifier", "", "invalid_request"},
		"no redirect":      {"redirect_uri", "", "invalid_request"},
		"no code":          {"code", "", "invalid_request"},
		"no grant":         {"grant_type", "", "unsupported_grant_type"},
		"a password":       {"grant_type", "password", "unsupported_grant_type"},
	} {
		secret := code()
		form := url.Values{"grant_type": {"authorization_code"}, "code": {secret}, "redirect_uri": {site},
			"code_verifier": {verifier}}
		form.Set(c.field, c.value)
		fails(name, f.Do("POST", "/auth/token", form.Encode(), "Content-Type", "", "Content-Type", formType), c.want,
			secret)
	}
	secret := code()
	session, err := f.Auth.Sessions.Authenticate(t.Context(), f.LogIn("ada@example.com", "a fine password"))
	f.Must(err)
	_, err = f.Auth.Admin.SetDisabled(t.Context(), session.User.UUID, true)
	f.Must(err)
	fails("disabled", exchange(f, secret, site), "invalid_grant", secret)
	f.Do("POST", "/auth/token", "x", "Content-Type", "", "Content-Type", "text/plain").Want(415)
	fails("a code that is no text", f.Do("POST", "/auth/token", `{"code":1}`), "invalid_request", "")
	exchange(f, secret, site, "Sec-Fetch-Site", "cross-site").Want(403)
}

func TestAnAPIKeyLogsInForNoApplication(t *testing.T) {
	f := startApplications(t)
	token := f.Register("ada@example.com", "a fine password")
	var key struct{ Token string }
	f.Do("POST", "/auth/keys", `{"name":"k","password":"a fine password"}`, "Authorization",
		"Bearer "+token).Want(201).JSON(&key)
	bearer := []string{"Authorization", "Bearer " + key.Token}
	f.Do("GET", "/auth/authorize?"+asking(site, "provider", "github").Encode(), "", bearer...).Want(403)
	code := landed(t, submit(f, asking(site), "a fine password").Want(303), site).Get("code")
	exchange(f, code, site, bearer...).Want(403)
	if to := submit(f, asking(site), "a fine password",
		bearer...).Want(303).Header.Get("Location"); !strings.HasPrefix(to, "/auth/authorize?") {
		t.Errorf("a form with a key leads to %s", to)
	}
	exchange(f, code, site).Want(http.StatusOK)
}

// A registration where it takes no mail ends with a code, as a login does.
func TestAnApplicationRegistersWithACode(t *testing.T) {
	f := startApplications(t)
	q := asking(site)
	page := f.Do("GET", "/auth/authorize?"+q.Encode(), "").Want(200)
	if !strings.Contains(page.Text, "register=true") || strings.Contains(page.Text, `name="register"`) {
		t.Errorf("the page has no link to register, or registers: %s", page.Text)
	}
	q.Set("register", "true")
	page = f.Do("GET", "/auth/authorize?"+q.Encode(), "").Want(200)
	if !strings.Contains(page.Text, `name="register" value="true"`) || !strings.Contains(page.Text, "new-password") {
		t.Errorf("the page does not register: %s", page.Text)
	}
	register := func(password string) apitest.Reply {
		form := url.Values{"authorize": {asking(site).Encode()}, "login": {"ada@example.com"}, "password": {password},
			"register": {"true"}}
		return f.Do("POST", "/auth/email", form.Encode(), "Content-Type", "", "Content-Type", formType).Want(303)
	}
	for _, c := range []struct{ password, reason, text string }{{"short", "invalid",
		"choose a password of 8 to 1,024 characters"}, {"a fine password", "", ""},
		{"a fine password", "taken", "already belongs to an account"}} {
		r := register(c.password)
		if c.reason == "" {
			code := landed(t, r, site).Get("code")
			exchange(f, code, site).Want(200)
			continue
		}
		to := r.Header.Get("Location")
		if u, err := url.Parse(to); err != nil || u.Path != "/auth/authorize" || u.Query().Get("reason") != c.reason ||
			u.Query().Get("register") != "true" {
			t.Fatalf("%s: to %s", c.reason, to)
		}
		if page := f.Do("GET", to, "").Want(200); !strings.Contains(page.Text, c.text) ||
			!strings.Contains(page.Text, `name="register" value="true"`) {
			t.Errorf("%s: %s", c.reason, page.Text)
		}
	}
	first := startApplications(t, func(o *account.Options) { o.Email.PostValidation = false })
	if page := first.Do("GET", "/auth/authorize?"+q.Encode(), "").Want(200); strings.Contains(page.Text,
		`name="register"`) || strings.Contains(page.Text, "register=true") {
		t.Errorf("a registration that begins with a mail can't end with a code: %s", page.Text)
	}
}

// RFC 8414: an issuer is an https URL, or of this machine during development, and what the document says is what there
// is.
func TestTheMetadataOfTheAuthorizationServer(t *testing.T) {
	const path = "/.well-known/oauth-authorization-server"
	startApplications(t).Do("GET", path, "").Want(404)
	apitest.StartLogin(t, 1, func(o *account.Options) { o.BaseURL = "https://belfry.example.org" })[0].Do("GET", path,
		"").Want(404)
	for _, none := range []string{"http://belfry.example.org/below", "http://localhost.example.org",
		"http://127.0.0.1.example.org", "http://10.0.0.1:8080"} {
		startApplications(t, func(o *account.Options) { o.BaseURL = none }).Do("GET", path, "").Want(404)
	}
	for _, issuer := range []string{"https://belfry.example.org", "https://belfry.example.org/below",
		"http://localhost:8080/below", "http://localhost:8080", "http://127.0.0.1:8080", "http://[::1]:8080"} {
		f := startApplications(t, func(o *account.Options) { o.BaseURL = issuer })
		r := f.Do("GET", path, "").Want(200).HasHeader("Content-Type", "application/json")
		const want = `{"issuer":"ISSUER","authorization_endpoint":"ISSUER/auth/authorize","token_endpoint":"ISSUER/auth/token",` +
			`"response_types_supported":["code"],"response_modes_supported":["query"],"grant_types_supported":["authorization_code"],"token_endpoint_auth_methods_supported":["none"],"code_challenge_methods_supported":["S256"],` +
			`"authorization_response_iss_parameter_supported":true}`
		if r.Text != strings.ReplaceAll(want, "ISSUER", issuer) {
			t.Errorf("%s", r.Text)
		}
		query := landed(t, f.Do("GET", "/auth/authorize?"+asking(site, "provider", "gitlab").Encode(), "").Want(302),
			site)
		if query.Get("iss") != issuer {
			t.Errorf("%s: redirected with %v", issuer, query)
		}
	}
}

// The page has the request several times, so a request is as long as one can be that has a meaning.
func TestTheRequestOfAnApplicationIsBounded(t *testing.T) {
	f := startApplications(t)
	f.Do("GET", "/auth/authorize?"+asking(site, "more", strings.Repeat("a", 15<<10)).Encode(), "").Want(200)
	f.Do("GET", "/auth/authorize?"+asking(site, "more", strings.Repeat("a", 16<<10)).Encode(),
		"").Want(400).Says("more than 16384 bytes")
}
