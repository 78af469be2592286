package console_test

import (
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pquerna/otp/totp"

	"belfry/pkg/account"
	"belfry/pkg/account/admin"
	"belfry/pkg/account/flow/logins"
	"belfry/pkg/account/record"
	"belfry/pkg/account/sessions"
	"belfry/pkg/api/apitest"
	"belfry/pkg/object"
	"belfry/pkg/store"
)

// clock shows the time of a test.
type clock struct{ ahead atomic.Int64 }

func (c *clock) now() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) }

func (c *clock) advance(d time.Duration) { c.ahead.Add(int64(d)) }

// use has the service use the clock.
func (c *clock) use(o *account.Options) { o.Now = c.now }

// phone is the authenticator app of a user.
type phone struct {
	*clock
	secret string
	codes  []string // recovery codes
}

// code is what the app shows. It is a later one each time, since none is accepted twice.
func (p phone) code(t *testing.T) string {
	t.Helper()
	p.advance(time.Minute)
	code, err := totp.GenerateCode(p.secret, p.now())
	if err != nil {
		t.Fatal(err)
	}
	return code
}

// client returns the client of a session.
func (f *fixture) client(token string) sessions.Client {
	f.Helper()
	session, err := f.Auth.Sessions.Authenticate(f.Context(), token)
	f.Must(err)
	if session == nil {
		f.Fatal("the session is not valid")
	}
	return sessions.Client{Session: session}
}

// enroll adds an authenticator app in a session, and returns it with the token of the session that replaces that.
func (f *fixture) enroll(c *clock, token string) (phone, string) {
	f.Helper()
	from := f.client(token)
	e, err := f.Auth.Enrollment.Begin(f.Context(), from.Session, record.FactorTOTP)
	f.Must(err)
	p := phone{clock: c, secret: e.Secret}
	issued, codes, err := f.Auth.Enrollment.Confirm(f.Context(), record.FactorTOTP, p.code(f.T), from)
	f.Must(err)
	p.codes = codes
	return p, issued.Token
}

const (
	adasPassword = "a fine password"
	secondURL    = "/console/second-factor"
)

// logIn logs in at the console, and returns the cookie of the login whose second factor is missing, as a header.
func (f *fixture) logIn(login, password, next string) []string {
	f.Helper()
	r := f.post("", "/console/login", url.Values{"login": {login}, "password": {password}, "next": {next}}.Encode())
	target := secondURL
	if next != "" {
		target += "?next=" + url.QueryEscape(next)
	}
	leads(f.T, r, target)
	cookies := r.Cookies()
	if len(cookies) != 1 || cookies[0].Name != "belfry-console-second" || !cookies[0].HttpOnly ||
		cookies[0].Path != "/" ||
		cookies[0].SameSite != http.SameSiteLaxMode || cookies[0].MaxAge != 600 || cookies[0].Value == "" {
		f.Fatalf("cookies %+v", cookies)
	}
	return []string{"Cookie", cookies[0].Name + "=" + cookies[0].Value}
}

func factor(kind, code, next string) string {
	return url.Values{"type": {kind}, "code": {code}, "next": {next}}.Encode()
}

// ends checks that a reply is the login page, which says why, and removes the cookie.
func ends(t *testing.T, r apitest.Reply, says string) {
	t.Helper()
	shows(t, is(t, r, http.StatusUnauthorized), says, `action="/console/login"`, `for="password"`)
	cookies := r.Cookies()
	if len(cookies) != 1 || cookies[0].Name != "belfry-console-second" || cookies[0].MaxAge >= 0 {
		t.Errorf("cookies %+v", cookies)
	}
}

func TestALoginAtTheConsoleNeedsTheSecondFactor(t *testing.T) {
	t.Parallel()
	c := &clock{}
	f := startUsers(t, c.use)
	p, _ := f.enroll(c, f.Admin)
	cookie := f.logIn(ada, adasPassword, "/console/users?q=x")
	page := is(t, f.get("", secondURL+"?next=%2Fconsole%2Fusers%3Fq%3Dx", cookie...), http.StatusOK)
	shows(t, page, "Code of your authenticator app", "Use a recovery code", `value="/console/users?q=x"`,
		`autocomplete="one-time-code"`)
	if strings.Contains(page.Text, "by mail") || strings.Contains(page.Text, cookie[1]) ||
		strings.Contains(page.Text, "/console/objects") {
		t.Errorf("the page shows too much: %s", page.Text)
	}
	ends(t, f.get("", secondURL), "log in again") // another browser
	ends(t, f.post("", secondURL, factor("totp", p.code(t), "")), "log in again")

	r := is(t, f.post("", secondURL, factor("totp", "000000", "/console/users"), cookie...), http.StatusForbidden)
	shows(t, r, "the code is wrong", `value="/console/users"`)
	if len(r.Cookies()) != 0 || strings.Contains(r.Text, "000000") {
		t.Errorf("after a wrong code: %v %s", r.Cookies(), r.Text)
	}
	shows(t, is(t, f.post("", secondURL, factor("email", "000000", ""), cookie...), http.StatusBadRequest),
		"no such second factor")
	code := p.code(t)
	r = f.post("", secondURL, factor("totp", code, "/console/users"), cookie...)
	leads(t, r, "/console/users")
	token := apitest.Token(r)
	is(t, f.get(token, "/console/users"), http.StatusOK)
	if me := f.client(token).Session; me.AAL != 2 || strings.Join(me.Methods, " ") != "password totp" {
		t.Errorf("the session is %+v", me)
	}
	ends(t, f.post("", secondURL, factor("totp", p.code(t), ""), cookie...), "is finished") // twice

	cookie = f.logIn(ada, adasPassword, "")
	// Replayed.
	shows(t, is(t, f.post("", secondURL, factor("totp", code, ""), cookie...), http.StatusForbidden), "was used")
	leads(t, f.post("", secondURL, factor("recovery", strings.ToLower(p.codes[3]), "https://evil.example.org/"),
		cookie...), "/console")
	cookie = f.logIn(ada, adasPassword, "")
	is(t, f.post("", secondURL, factor("recovery", p.codes[3], ""), cookie...), http.StatusForbidden)
	c.advance(logins.PendingTTL)
	ends(t, f.post("", secondURL, factor("totp", p.code(t), ""), cookie...), "took too long")

	cookie = f.logIn(ada, adasPassword, "")
	_, err := f.Auth.Admin.SetDisabled(t.Context(), f.uuidOf(ada), true)
	f.Must(err)
	r = is(t, f.post("", secondURL, factor("totp", p.code(t), ""), cookie...), http.StatusForbidden)
	shows(t, r, "this account is disabled", `action="/console/login"`)
}

func TestCodesAreNotGuessedAtTheConsole(t *testing.T) {
	t.Parallel()
	c := &clock{}
	f := startUsers(t, c.use)
	p, _ := f.enroll(c, f.Admin)
	cookie := f.logIn(ada, adasPassword, "")
	for range 5 {
		is(t, f.post("", secondURL, factor("totp", "000000", ""), cookie...), http.StatusForbidden)
	}
	ends(t, f.post("", secondURL, factor("totp", p.code(t), ""), cookie...), "too many tries")

	cookie = f.logIn(ada, adasPassword, "")
	is(t, f.post("", secondURL, factor("totp", "000000", ""), cookie...), http.StatusForbidden)
	r := is(t, f.post("", secondURL, factor("totp", "000000", "/console/users"), cookie...), http.StatusTooManyRequests)
	shows(t, r, "too many wrong codes", `value="/console/users"`)
	if r.Header.Get("Retry-After") == "" {
		t.Error("429 without Retry-After")
	}
}

// Without login by e-mail admins alone log in by a password, which decides before the second factor is asked for.
func TestAnAdminWithASecondFactorLogsInWithoutLoginByEmail(t *testing.T) {
	t.Parallel()
	c := &clock{}
	f, token := startEmpty(t, c.use, func(o *account.Options) { o.Email = nil })
	f.Admin = apitest.Token(f.post("", "/console/first", first(token, ada, adasPassword)))
	p, _ := f.enroll(c, f.Admin)
	cookie := f.logIn(ada, adasPassword, "")
	leads(t, f.post("", secondURL, factor("totp", p.code(t), ""), cookie...), "/console")
	_, err := f.Auth.Admin.SetAdmin(t.Context(), f.uuidOf(ada), false)
	f.Must(err)
	r := is(t, f.post("", "/console/login", first("", ada, adasPassword)), http.StatusForbidden)
	if len(r.Cookies()) != 0 {
		t.Errorf("who is no admin gets %v", r.Cookies())
	}
}

// withMailFactor makes an admin whose second factor is a code of a mail, and returns the token of a session of before.
func (f *fixture) withMailFactor(users *store.Store, login string) string {
	f.Helper()
	user, err := f.Auth.Admin.CreateUser(f.Context(),
		admin.NewUser{Login: login, Password: adasPassword, Admin: true, Validated: true})
	f.Must(err)
	token := f.LogIn(login, adasPassword)
	_, err = users.Mutate(f.Context(), user.UUID, func(store.Stored) (store.Mutation, error) {
		return store.Mutation{
			Fields: object.Object{"_factors": []byte(`{"email":{"created":"2026-01-01T00:00:00Z"}}`)}}, nil
	})
	f.Must(err)
	return token
}

func TestACodeIsMailedToWhoLogsInAtTheConsole(t *testing.T) {
	t.Parallel()
	var users *store.Store
	f := startUsers(t, func(o *account.Options) { users = o.Users })
	session := f.withMailFactor(users, "eve@example.com")
	cookie := f.logIn("eve@example.com", adasPassword, "/console/users")
	page := is(t, f.get("", secondURL, cookie...), http.StatusOK)
	shows(t, page, "Send a code by mail", `action="/console/second-factor/code"`)
	if strings.Contains(page.Text, "Code of the mail") {
		t.Error("a code is asked for that was not sent")
	}
	ends(t, f.post(session, secondURL+"/code", "next=/console/users"), "log in again") // without the cookie
	r := f.post("", secondURL+"/code", "next=/console/users", cookie...)
	leads(t, r, secondURL+"?mail=sent&next=%2Fconsole%2Fusers")
	shows(t, is(t, f.get("", r.Header.Get("Location"), cookie...), http.StatusOK), "Code of the mail",
		"Send another code by mail", `value="/console/users"`)
	// Within the interval of mails.
	r = is(t, f.post("", secondURL+"/code", "next=/console/users", cookie...), http.StatusTooManyRequests)
	shows(t, r, "Send a code by mail", `role="alert"`)
	shows(t, is(t, f.post("", secondURL, factor("email", "000000", ""), cookie...), http.StatusForbidden),
		"the code is wrong", "Code of the mail")
}
