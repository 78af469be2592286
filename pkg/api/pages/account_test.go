package pages_test

import (
	"encoding/base64"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pquerna/otp/totp"

	"belfry/config"
	"belfry/pkg/account"
	"belfry/pkg/account/sessions"
	"belfry/pkg/api"
	"belfry/pkg/api/apitest"
	"belfry/pkg/store/policy"
)

const (
	strict = "default-src 'none'; style-src 'self'; img-src 'self' data:; font-src 'self'; form-action 'self' " +
		"https://app.example.org; frame-ancestors 'none'; base-uri 'none'"
	script = "; script-src 'self'; connect-src 'self'"
)

func withPasskeys(o *account.Options) {
	o.Passkeys = &config.Passkeys{RPID: "belfry.example.org", RPName: "Belfry",
		Origins: []string{"http://belfry.example.org"}}
}

// user is a browser whose forms need no script.
type user struct {
	*apitest.Front
	token string
}

func (u *user) page(path string) apitest.Reply {
	u.Helper()
	return u.Do("GET", path, "", "Cookie", "belfry="+u.token)
}

// send sends a form, and keeps the session that the reply sets.
func (u *user) send(path, form string) apitest.Reply {
	u.Helper()
	r := u.Do("POST", path, form, "Content-Type", "", "Content-Type", "application/x-www-form-urlencoded", "Cookie",
		"belfry="+u.token)
	for _, c := range r.Cookies() {
		if c.Name == "belfry" {
			u.token = c.Value
		}
	}
	return r
}

// leads sends a form, and checks where it leads to.
func (u *user) leads(path, form, location string) {
	u.Helper()
	u.send(path, form).Want(303).HasHeader("Location", location).HasHeader("Cache-Control", "no-store")
}

var (
	shownSecret = regexp.MustCompile(`id="secret">([A-Z2-7]+)<`)
	shownCode   = regexp.MustCompile(`<li><code>([^<]+)</code></li>`)
)

// Where a second factor is required, a session without one reaches the page of the account, and adds one by plain
// forms. What is shown once is the reply to a POST, which runs no script and is in no cache.
func TestAnAppIsAddedByFormsAndItsSecretsAreInNoURL(t *testing.T) {
	f := start(t, withPasskeys, func(o *account.Options) { o.MFA.Policy = sessions.MFARequired })
	u := &user{f, f.Register("ada@example.com", "a fine password")}
	contains(t, u.page("/?validation=email").Want(200), "A second factor is required here", `href="/account"`)
	contains(t, u.page("/account").Want(200), "A second factor is required here", `action="/auth/factors/totp"`,
		"!recovery codes")

	once := func(r apitest.Reply) string {
		t.Helper()
		r.Want(200).HasHeader("Cache-Control", "no-store").HasHeader("Content-Security-Policy",
			strict).HasHeader("Referrer-Policy", "same-origin").HasHeader("X-Frame-Options", "DENY")
		contains(t, r, "!<script")
		return r.Text
	}
	page := once(u.send("/auth/factors/totp", ""))
	found := shownSecret.FindStringSubmatch(page)
	if found == nil || !strings.Contains(page, `src="data:image/png;base64,`) {
		t.Fatalf("no secret:\n%s", page)
	}
	u.leads("/auth/factors/totp", "code=000", "/account?reason=refused&setup=totp")
	contains(t, u.page("/account?reason=refused&setup=totp").Want(200), "That was not right",
		"Code of the app that you have set up", "!"+found[1])
	code, err := totp.GenerateCode(found[1], time.Now())
	if err != nil {
		t.Fatal(err)
	}
	before := u.token
	codes := shownCode.FindAllStringSubmatch(once(u.send("/auth/factors/totp", "code="+code)), -1)
	if len(codes) != 10 || u.token == before {
		t.Fatalf("codes %v, the same session: %t", codes, u.token == before)
	}
	contains(t, u.page("/account").Want(200), "Authenticator app", "10 are left", "!"+codes[0][1],
		"!A second factor is required here")
	f.Me(before).Want(401)

	renewed := once(u.send("/auth/factors/recovery", ""))
	if strings.Contains(renewed, codes[0][1]) || len(shownCode.FindAllString(renewed, -1)) != 10 {
		t.Errorf("the new codes:\n%s", renewed)
	}
	u.leads("/auth/factors/totp", "remove=true", "/account?reason=last") // one is required
	u.leads("/auth/factors/email", "remove=true", "/account?reason=gone")
	u.leads("/auth/factors/totp", "", "/account?reason=taken")
	u.leads("/auth/factors/passkey", "", "/account?reason=last") // without a passkey
}

// Whoever has no session, an ended one, or a page of another origin changes nothing, and gets no page of an account.
func TestFormsOfTheAccountNeedItsSession(t *testing.T) {
	f := start(t, withPasskeys)
	ada, eve := &user{f, f.Register("ada@example.com", "a fine password")},
		&user{f, f.Register("eve@example.com", "another password")}
	nobody := &user{f, "stale"}
	contains(t, nobody.page("/account").Want(200), "Log in to see your account", `href="/login"`, "!<section")
	contains(t, nobody.page("/account?outcome=%3Cb%3E&reason=made+up&setup=totp").Want(200), "!<b>", "!made up",
		"!role=")
	var list struct{ Sessions []sessions.Info }
	f.Do("GET", "/auth/sessions", "", "Authorization", "Bearer "+ada.token).Want(200).JSON(&list)
	session := "/auth/sessions/" + list.Sessions[0].ID
	for path, form := range map[string]string{
		"/auth/factors/totp": "", "/auth/factors/email": "", "/auth/factors/passkey": "", "/auth/factors/recovery": "",
		"/auth/step-up": "password=a+fine+password",
		session:         "remove=true", "/auth/idents/ada@example.com_email/address": "address=new%40example.com",
		"/auth/email": "password=a+fine+password&newPassword=a+better+password",
	} {
		ended := "/account?reason=ended"
		if path == "/auth/email" {
			ended = "/account?form=password&reason=ended"
		}
		nobody.leads(path, form, ended)
		f.Do("POST", path, form, "Content-Type", "", "Content-Type", "application/x-www-form-urlencoded", "Cookie",
			"belfry="+ada.token, "Sec-Fetch-Site", "cross-site").Want(403)
	}
	eve.leads(session, "remove=true", "/account?reason=gone")
	eve.leads("/auth/idents/ada@example.com_email/address", "address=new%40example.com&password=another+password",
		"/account?form=address&reason=gone")
	ada.leads(session, "", "/account?reason=invalid")
	f.Me(ada.token).Want(200)

	ada.leads("/auth/step-up", "password=wrong", "/account?form=step&reason=refused")
	before := ada.token
	ada.leads("/auth/step-up", "password=a+fine+password", "/account?outcome=proven")
	f.Me(before).Want(401)
	ada.leads("/auth/email", "password=a+fine+password&newPassword=a+better+password", "/account?outcome=password-set")
	ada.leads("/auth/idents/ada@example.com_email/address", "address=new%40example.com&password=a+better+password",
		"/account?outcome=address-mailed")
	f.Do("GET", "/auth/sessions", "", "Authorization", "Bearer "+ada.token).Want(200).JSON(&list)
	ada.leads("/auth/sessions/"+list.Sessions[0].ID, "remove=true", "/account?outcome=session-ended")
	contains(t, ada.page("/account?outcome=session-ended").Want(200), "The session has ended",
		"Log in to see your account")
}

// The script of passkeys is on the pages that use it, where there are passkeys, that of forms on those with passwords,
// and none on others.
func TestPagesRunTheScriptsThatTheyUse(t *testing.T) {
	with, without := start(t, withPasskeys), start(t)
	for path, uses := range map[string]struct{ passkeys, passwords bool }{
		"/login": {true, true}, "/account": {true, true}, "/second-factor?factors=passkey": {true, false},
		"/register": {false, true}, "/recovery?login=x&token=y": {false, true}, "/": {}, "/login/mail": {},
		"/login-failed": {},
	} {
		for f, passkeys := range map[*apitest.Front]bool{with: uses.passkeys, without: false} {
			policy, texts := strict, []string{"!/auth/passkey.js", "!/auth/pages.js"}
			switch {
			case passkeys:
				policy, texts[0] = strict+script, `<script src="/auth/passkey.js" defer></script>`
			case uses.passwords:
				policy = strict + "; script-src 'self'"
			}
			if uses.passwords {
				texts[1] = `<script src="/auth/pages.js" defer></script>`
			}
			contains(t, f.Do("GET", path, "").Want(200).HasHeader("Content-Security-Policy", policy), texts...)
		}
	}
	contains(t, with.Do("GET", "/second-factor?factors=passkey", "").Want(200),
		`<noscript><p class="note">Passkeys need JavaScript`)
	with.Do("GET", "/auth/pages.js", "").Want(200).HasHeader("Content-Type", "text/javascript; charset=utf-8")
	with.Do("GET", "/auth/passkey.js", "").Want(200).HasHeader("Content-Type",
		"text/javascript; charset=utf-8").HasHeader("X-Content-Type-Options", "nosniff")
	without.Do("GET", "/auth/passkey.js", "").Want(404)
}

// The link to the console is for admins alone.
func TestTheConsoleIsLinkedForAdmins(t *testing.T) {
	rule, found := policy.CompileUserRule(`has(user.name) && user.name == "Ada"`)
	if len(found) > 0 {
		t.Fatal(found)
	}
	f := start(t, func(o *account.Options) { o.Admins = rule }, func(o *api.Options) { o.Site.Links.Console = "/console" })
	for name, link := range map[string]string{"Ada": `href="/console"`, "Eve": `!href="/console"`} {
		token := apitest.Token(f.Do("POST", "/auth/email", `{"register":true,"password":"a fine password","login":"`+
			strings.ToLower(name)+`@example.com","name":"`+name+`"}`).Want(204))
		for _, path := range []string{"/", "/?validation=email"} {
			contains(t, f.Do("GET", path, "", "Cookie", "belfry="+token).Want(200), link)
		}
	}
	contains(t, f.Do("GET", "/", "").Want(200), `!href="/console"`)
}

// A change of an address that failed shows its form again with the address, once, and beside no other address. The
// cookie with it is for forms alone.
func TestAFailedChangeOfAnAddressKeepsWhatWasEntered(t *testing.T) {
	f := start(t)
	u := &user{f, f.Register("ada@example.com", "a fine password")}
	const form = "address=grace%40example.com&password=wrong"
	r := u.send("/auth/idents/ada@example.com_email/address", form).Want(303).HasHeader("Location",
		"/account?form=address&reason=refused")
	cookies := r.Cookies()
	if len(cookies) != 1 || !cookies[0].HttpOnly || cookies[0].MaxAge != 300 {
		t.Fatal(cookies)
	}
	page := func(value string) apitest.Reply {
		t.Helper()
		return f.Do("GET", "/account?form=address&reason=refused", "", "Cookie",
			"belfry="+u.token+"; "+cookies[0].Name+"="+value).Want(200)
	}
	kept := page(cookies[0].Value)
	contains(t, kept, "That was not right", `value="grace@example.com"`, "<details open>")
	if gone := kept.Cookies(); len(gone) != 1 || gone[0].MaxAge >= 0 {
		t.Error(gone)
	}
	other := base64.RawURLEncoding.EncodeToString([]byte("eve@example.com_email grace@example.com"))
	contains(t, page(other), "!grace@example.com", "!<details open>")

	program := f.Do("PUT", "/auth/idents/ada@example.com_email/address",
		`{"address":"grace@example.com","password":"wrong"}`, "Cookie", "belfry="+u.token)
	if len(program.Cookies()) > 0 || program.StatusCode < 400 {
		t.Error(program.StatusCode, program.Cookies())
	}
}

// A form that an old session sends leads to the proof that it needs first, and not to the form itself below.
func TestAnOldSessionIsAskedForAProofWhereItIsGiven(t *testing.T) {
	var ahead atomic.Int64
	f := start(t, func(o *account.Options) {
		o.Now = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
		o.Deletion = &config.Deletion{Grace: 14 * 24 * time.Hour}
	})
	u := &user{f, f.Register("ada@example.com", "a fine password")}
	ahead.Store(int64(11 * time.Minute))
	const failed = "/account?form=deletion&reason=step-up"
	u.leads("/auth/deletion", "password=a+fine+password", failed)
	page := u.page(failed).Want(200)
	contains(t, page, "First prove again who you are", `id="proof-password"`)
	if strings.Index(page.Text, "First prove again") > strings.Index(page.Text, `id="proof-password"`) {
		t.Errorf("the reason is not above the proof:\n%s", page.Text)
	}
}

// The form says until when a user can keep the account after all, or that there is no such time.
func TestTheFormOfADeletionSaysUntilWhenItCanBeUndone(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for grace, words := range map[time.Duration]map[string]string{
		14 * 24 * time.Hour: {"en": "You have until 2026-03-15 12:00 UTC to change your mind.",
			"de": "Bis zum 15.03.2026, 12:00 Uhr (UTC) können Sie"},
		0: {"en": "Your account is deleted at once, for good.", "de": "sofort und endgültig"},
	} {
		f := start(t, func(o *account.Options) {
			o.Now, o.Deletion = func() time.Time { return now }, &config.Deletion{Grace: grace}
		})
		token := f.Register("ada@example.com", "a fine password")
		for language, text := range words {
			r := f.Do("GET", "/account", "", "Cookie", "belfry="+token, "Accept-Language", language).Want(200)
			contains(t, r, text)
		}
	}
}

// Sessions name the browser and the system, or else the program; no user agent of a browser is shown as it is.
func TestSessionsNameTheDevice(t *testing.T) {
	f := start(t)
	f.Register("ada@example.com", "a fine password")
	token := ""
	for _, agent := range []string{"Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0",
		"A program/1.0 <b>", "Mozilla/5.0 (unknown)"} {
		token = apitest.Token(f.Do("POST", "/auth/email", `{"login":"ada@example.com","password":"a fine password"}`,
			"User-Agent", agent).Want(204))
	}
	for language, words := range map[string][]string{"en": {"Firefox on Linux", "Unknown device", "Login: Password. "},
		"de": {"Firefox unter Linux", "Unbekanntes Gerät", "Anmeldung: Passwort. "}} {
		r := f.Do("GET", "/account", "", "Cookie", "belfry="+token, "Accept-Language", language).Want(200)
		contains(t, r, append(words, "A program/1.0 &lt;b&gt;", "!Mozilla", "!<b>",
			`<input type="text" autocomplete="username" value="ada@example.com" readonly hidden>`)...)
	}
}
