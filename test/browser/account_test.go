package browser

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	scripts "github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/webauthn"
	"github.com/chromedp/chromedp"
	"github.com/pquerna/otp/totp"

	"belfry/test/kit"
	"belfry/test/mailbox"
)

// account is a belfry with passkeys, and a tab whose browser has an authenticator.
type account struct {
	*fixture
	authenticator webauthn.AuthenticatorID
	secret        string   // of the authenticator app
	codes         []string // of recovery
	mails         *mailbox.Server
	read          int // mails that were read
}

// TestAccount manages an account on its page, as its user does.
func TestAccount(t *testing.T) {
	a := &account{fixture: &fixture{axe: axeScript(t), top: t, folder: t.TempDir()}, mails: mailbox.Start(t)}
	port := kit.FreePort(t)
	a.write(t, "belfry.yaml", []byte(fmt.Sprintf(`
listen: 127.0.0.1:%[1]d
baseURL: http://localhost:%[1]d
bus: {listen: "127.0.0.1:0"}
stores: {Users: {expose: {}}}
mailers: {default: {type: smtp, host: localhost, port: %[2]d, tls: none}}
authentication:
  redirects: ["http://127.0.0.1/signed-in"]
  passkeys: {}
  providers:
    email:
      postValidation: true
      skipEmailValidation: true
      mailInterval: 0s
      login: {code: true, link: true, codeMail: {subject: "{{.Token}}"}, linkMail: {text: "{{.Link}}"}}
`, port, a.mails.Port)))
	a.serve(t)
	a.URL = fmt.Sprintf("http://localhost:%d", port) // what a passkey is bound to is no address
	browser := openBrowser(t)
	a.openTab(t, browser)
	a.addAuthenticator(t)
	for _, part := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"nobody", a.testNobody},
		{"passkey", a.testPasskey},
		{"application", a.testPasskeyForApplication},
		{"unverified", a.testUnverified},
		{"older browser", a.testOlderBrowser},
		{"sessions", a.testSessions},
		{"app", func(t *testing.T) { a.testApp(t, browser) }},
		{"second passkey", a.testSecondPasskey},
		{"console", a.testConsole},
		{"removed passkey", a.testRemovedPasskey},
		{"password", a.testPassword},
		{"mailed codes", a.testMailedCodes},
		{"login by mail", func(t *testing.T) { a.testLoginByMail(t, browser) }},
		{"deletion", a.testDeletion},
	} {
		if !t.Run(part.name, part.run) {
			return
		}
		a.checkComplaints(t)
	}
}

// call sends a command of the protocol to a tab.
func call[P, R any](t *testing.T, f *fixture, command cdp.Command[P, R], params P) R {
	t.Helper()
	ctx, cancel := kit.Patience(f.tab, patience)
	defer cancel()
	r, err := chromedp.Call(ctx, command, params)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func (a *account) addAuthenticator(t *testing.T) {
	t.Helper()
	call(t, a.fixture, webauthn.Enable, webauthn.EnableParams{})
	a.authenticator = call(t, a.fixture, webauthn.AddVirtualAuthenticator,
		webauthn.AddVirtualAuthenticatorParams{Options: &webauthn.VirtualAuthenticatorOptions{
			Protocol: webauthn.AuthenticatorProtocolCtap2, Transport: webauthn.AuthenticatorTransportInternal,
			HasResidentKey: true, HasUserVerification: true, IsUserVerified: true, AutomaticPresenceSimulation: true,
		}}).AuthenticatorID
}

// session returns the methods and the level of the session of the tab, which shows a page that may ask.
func (a *account) session(t *testing.T) string {
	t.Helper()
	a.open(t, "/account")
	return a.get(t,
		`fetch("/auth/sessions").then(r => r.json()).then(r => r.sessions.find(s => s.current)).then(s => s.methods.join("+") + " " + s.aal)`, chromedp.EvalAwaitPromise)
}

// loggedInBy checks the methods and the level of the session of the tab.
func (a *account) loggedInBy(t *testing.T, want string) {
	t.Helper()
	if s := a.session(t); s != want {
		t.Errorf("the session is by %s, want %s", s, want)
	}
}

func (a *account) get(t *testing.T, expression string, options ...chromedp.EvaluateOption) string {
	t.Helper()
	return evaluate[string](t, a.fixture, expression, options...)
}

func (a *account) logOut(t *testing.T) {
	t.Helper()
	a.open(t, "/account")
	a.press(t, "Log out")
	a.at(t, "/")
}

// enterPassword sends the form of the login page.
func (f *fixture) enterPassword(t *testing.T, password string) {
	t.Helper()
	f.open(t, "/login")
	f.fill(t, "#login", address)
	f.fill(t, "#password", password)
	f.press(t, "Log in")
}

func (a *account) testNobody(t *testing.T) {
	a.open(t, "/account")
	a.shows(t, "Log in to see your account.")
	a.good(t, "page-account-nobody")
	a.press(t, "Log in")
	a.at(t, "/login")
	a.shows(t, "Log in with a passkey")
	a.good(t, "page-login-passkey")
}

// testPasskey adds a passkey, and logs in by it.
func (a *account) testPasskey(t *testing.T) {
	a.open(t, "/register")
	a.fill(t, "#login", address)
	a.fill(t, "#password", password)
	a.press(t, "Register")
	a.at(t, "/?validation=email")
	a.press(t, "Your account")
	a.at(t, "/account")
	a.shows(t, "With a passkey you log in by your device")
	a.fill(t, "#name", "Laptop")
	a.press(t, "Add a passkey")
	a.shows(t, "The passkey is added.")
	a.shows(t, "not used yet")
	a.good(t, "page-account")
	// The authenticator knows that it has one.
	a.fill(t, "#name", "Again")
	a.press(t, "Add a passkey")
	a.shows(t, "This device has a passkey of your account already.")

	a.logOut(t)
	a.open(t, "/login")
	a.press(t, "Log in with a passkey")
	a.at(t, "/?validation=passkey")
	a.loggedInBy(t, "passkey 2")
	a.shows(t, "last used")
}

// testPasskeyForApplication logs in for a program, without a session in the browser.
func (a *account) testPasskeyForApplication(t *testing.T) {
	p := startProgram(t)
	a.open(t, p.page())
	a.good(t, "login-application-passkey")
	a.press(t, "Log in with a passkey")
	a.shows(t, "You can close this page.")
	var sessions struct {
		Sessions []struct {
			Current bool
			Methods []string
			AAL     int
		}
	}
	bearer := "Bearer " + p.token(t, a.fixture)
	a.request(t, "GET", "/auth/sessions", "", &sessions, "Authorization", bearer)
	for _, s := range sessions.Sessions {
		if s.Current && (s.AAL != 2 || strings.Join(s.Methods, " ") != "passkey") {
			t.Errorf("the session is %+v", s)
		}
	}
	a.request(t, "DELETE", "/auth", "", nil, "Authorization", bearer)
	a.open(t, "/login")
}

// testUnverified logs in by authenticators that have not verified their user.
func (a *account) testUnverified(t *testing.T) {
	a.logOut(t)
	yes, no := true, false
	call(t, a.fixture, webauthn.SetResponseOverrideBits,
		webauthn.SetResponseOverrideBitsParams{AuthenticatorID: a.authenticator, IsBadUV: &yes})
	a.open(t, "/login")
	a.press(t, "Log in with a passkey")
	a.at(t, "/login-failed?reason=denied")
	call(t, a.fixture, webauthn.SetResponseOverrideBits,
		webauthn.SetResponseOverrideBitsParams{AuthenticatorID: a.authenticator, IsBadUV: &no})
	call(t, a.fixture, webauthn.SetUserVerified,
		webauthn.SetUserVerifiedParams{AuthenticatorID: a.authenticator, IsUserVerified: false})
	a.open(t, "/login")
	a.press(t, "Log in with a passkey")
	a.shows(t, "No passkey was used")
	a.good(t, "page-login-no-passkey")
	call(t, a.fixture, webauthn.SetUserVerified,
		webauthn.SetUserVerifiedParams{AuthenticatorID: a.authenticator, IsUserVerified: true})
	a.press(t, "Log in with a passkey")
	a.at(t, "/?validation=passkey")
}

// testOlderBrowser logs in where the browser converts nothing, and finds no passkeys where it has none.
func (a *account) testOlderBrowser(t *testing.T) {
	a.logOut(t)
	for _, older := range []struct {
		script string
		then   func()
	}{
		{`delete PublicKeyCredential.parseRequestOptionsFromJSON; delete PublicKeyCredential.prototype.toJSON`, func() {
			a.press(t, "Log in with a passkey")
			a.at(t, "/?validation=passkey")
		}},
		{`delete window.PublicKeyCredential`, func() {
			a.shows(t, "Log in")
			if text := a.text(t); strings.Contains(text, "passkey") {
				t.Errorf("a page offers passkeys to a browser without them:\n%s", text)
			}
		}},
	} {
		script := call(t, a.fixture, scripts.AddScriptToEvaluateOnNewDocument,
			scripts.AddScriptToEvaluateOnNewDocumentParams{Source: older.script}).Identifier
		a.open(t, "/login")
		older.then()
		call(t, a.fixture, scripts.RemoveScriptToEvaluateOnNewDocument,
			scripts.RemoveScriptToEvaluateOnNewDocumentParams{Identifier: script})
	}
}

// testSessions ends the session of a program.
func (a *account) testSessions(t *testing.T) {
	var program struct{ Token string }
	a.request(t, "POST", "/auth/email", fmt.Sprintf(`{"login":%q,"password":%q}`, address, password), &program,
		"Prefer", "return=representation", "User-Agent", "A program/1.0")
	a.open(t, "/account")
	a.shows(t, "A program/1.0")
	a.press(t, "End this session")
	a.shows(t, "The session has ended.")
	if text := a.text(t); strings.Contains(text, "A program/1.0") {
		t.Errorf("the session is still there:\n%s", text)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, a.URL+"/auth/me", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+program.Token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("the token is still valid: %s", resp.Status)
	}
	if status := evaluate[int64](t, a.fixture, `fetch("/auth/export").then(r => r.status)`,
		chromedp.EvalAwaitPromise); status != http.StatusOK {
		t.Errorf("an export from the page is %d", status)
	}
}

// code returns what the authenticator app shows some periods from now.
func (a *account) code(t *testing.T, periods int) string {
	t.Helper()
	code, err := totp.GenerateCode(a.secret, time.Now().Add(time.Duration(periods)*30*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	return code
}

// testApp sets up an authenticator app, and logs in with it and with a recovery code. A session of another browser has
// to prove the new factor before it changes anything.
func (a *account) testApp(t *testing.T, browser context.Context) {
	other := &fixture{axe: a.axe, URL: a.URL}
	other.openTab(t, browser)
	other.enterPassword(t, password)
	other.at(t, "/?validation=email")

	a.open(t, "/account")
	a.press(t, "Add an authenticator app")
	a.shows(t, "Scan the picture")
	a.good(t, "page-account-app")
	a.secret = a.get(t, `document.getElementById("secret").textContent`)
	if at := a.get(t, `location.href`); strings.Contains(at, a.secret) || !strings.HasSuffix(at, "/auth/factors/totp") {
		t.Errorf("the secret is at %s", at)
	}
	evaluate[bool](t, a.fixture, `document.querySelector(".qr img").decode().then(() => true)`,
		chromedp.EvalAwaitPromise)
	a.fill(t, "#code", "000")
	a.press(t, "Add the app")
	a.at(t, "/account?reason=refused&setup=totp")
	a.fill(t, "#setup", a.code(t, 0))
	a.press(t, "Add it")
	a.shows(t, "Keep these codes")
	a.good(t, "page-account-codes")
	a.codes = evaluate[[]string](t, a.fixture, `[...document.querySelectorAll(".codes code")].map(c => c.textContent)`)
	if len(a.codes) != 10 || len(slices.Compact(slices.Sorted(slices.Values(a.codes)))) != 10 {
		t.Fatalf("the recovery codes are %v", a.codes)
	}
	a.press(t, "I have kept them")
	a.at(t, "/account")
	a.shows(t, "10 are left")
	if text := a.text(t); strings.Contains(text, a.codes[0]) {
		t.Errorf("the codes are shown again:\n%s", text)
	}
	if s := a.session(t); !strings.HasSuffix(s, "totp 2") {
		t.Errorf("the session is by %s", s)
	}

	other.open(t, "/account")
	other.shows(t, "Prove again who you are")
	other.good(t, "page-account-step")
	other.press(t, "Make new recovery codes")
	other.at(t, "/account?reason=step-up")
	other.press(t, "End this session")
	other.at(t, "/account?outcome=session-ended") // which needs no step
	other.submit(t, "#proof-recovery", a.codes[0])
	other.at(t, "/account?outcome=proven")
	other.press(t, "Make new recovery codes")
	other.shows(t, "Keep these codes")
	a.codes = evaluate[[]string](t, other, `[...document.querySelectorAll(".codes code")].map(c => c.textContent)`)
	other.press(t, "Log out")
	other.checkComplaints(t)

	a.open(t, "/account") // its session was ended by the other
	a.shows(t, "Log in to see your account.")
	a.enterPassword(t, password)
	a.at(t, "/second-factor?factors=totp+recovery")
	a.good(t, "page-second-factor")
	a.submit(t, "#code", a.code(t, 1))
	a.shows(t, "You are logged in")
	a.loggedInBy(t, "password+totp 2")
	a.logOut(t)
	for range 2 { // a code works once
		a.enterPassword(t, password)
		a.press(t, "Use a recovery code")
		a.submit(t, "#recovery", a.codes[1])
		if a.leaves(t, "/second-factor?factors=totp+recovery") != "/second-factor" {
			a.logOut(t)
		}
	}
	a.shows(t, "That was not right.")
}

// leaves waits until the browser is at another path than one, and returns its path without the query.
func (a *account) leaves(t *testing.T, path string) (to string) {
	t.Helper()
	a.until(t, func() error {
		at, err := attempt[[]string](a.fixture,
			`document.readyState === "complete" ? [location.pathname, location.search] : [""]`)
		if err != nil {
			return err
		}
		if strings.Join(at, "") == path || at[0] == "" {
			return fmt.Errorf("the browser is at %v", at)
		}
		to = at[0]
		return nil
	})
	return to
}

// testSecondPasskey logs in by a password and a passkey.
func (a *account) testSecondPasskey(t *testing.T) {
	a.open(t, "/login")
	a.press(t, "Log in with a passkey")
	a.at(t, "/?validation=passkey")
	a.open(t, "/account")
	a.press(t, "Use your passkeys as second factor")
	a.at(t, "/account?outcome=factor-added")
	a.logOut(t)
	a.enterPassword(t, password)
	a.at(t, "/second-factor?factors=totp+passkey+recovery")
	a.good(t, "page-second-factor-passkey")
	a.press(t, "Use a passkey")
	a.shows(t, "You are logged in")
	a.loggedInBy(t, "password+passkey 2")
}

// testConsole logs in to the console by a passkey, by a password and a passkey, and proves there again who the admin
// is.
func (a *account) testConsole(t *testing.T) {
	config := filepath.Join(a.folder, "belfry.yaml")
	a.belfry(t, "user", "admin", address, "--config", config)
	a.logOut(t)
	a.open(t, "/console/users")
	a.at(t, "/console/login?next=%2Fconsole%2Fusers")
	a.good(t, "console-login-passkey")
	a.press(t, "Log in with a passkey")
	a.at(t, "/console/users")
	a.press(t, "Log out")
	a.at(t, "/console/login")
	a.fill(t, "#login", address)
	a.fill(t, "#password", password)
	a.press(t, "Log in")
	a.at(t, "/console/second-factor")
	a.good(t, "console-second-factor-passkey")
	call(t, a.fixture, webauthn.SetUserVerified, webauthn.SetUserVerifiedParams{AuthenticatorID: a.authenticator, IsUserVerified: false})
	a.press(t, "Use a passkey")
	a.shows(t, "No passkey was used")
	call(t, a.fixture, webauthn.SetUserVerified, webauthn.SetUserVerifiedParams{AuthenticatorID: a.authenticator, IsUserVerified: true})
	a.press(t, "Use a passkey")
	a.at(t, "/console/start")
	a.loggedInBy(t, "password+passkey 2")
	a.open(t, "/console/step-up?next=/console/users")
	a.press(t, "Use a passkey")
	a.at(t, "/console/users")
	a.shows(t, "You have proven who you are.")
	a.belfry(t, "user", "admin", "--revoke", address, "--config", config) // admins don't delete themselves
}

// testRemovedPasskey renames a passkey, removes it, and is refused with it.
func (a *account) testRemovedPasskey(t *testing.T) {
	a.open(t, "/account")
	a.press(t, "Rename or remove: Laptop")
	a.fill(t, "#name-0", "Key <ring>")
	a.good(t, "page-account-passkey")
	a.press(t, "Rename")
	a.shows(t, "The passkey is renamed.")
	a.press(t, "Rename or remove: Key <ring>")
	a.press(t, "Remove the passkey")
	a.shows(t, "the last passkey that is a second factor")
	a.click(t, `[aria-label="Remove: Passkeys"]`)
	a.shows(t, "The second factor is removed.")
	a.press(t, "Rename or remove: Key <ring>")
	a.press(t, "Remove the passkey")
	a.shows(t, "The passkey is removed.")
	a.logOut(t)
	a.open(t, "/login")
	a.press(t, "Log in with a passkey")
	a.at(t, "/login-failed?reason=denied")
}

// testPassword removes the app, and changes the password.
func (a *account) testPassword(t *testing.T) {
	a.enterPassword(t, password)
	a.press(t, "Use a recovery code")
	a.submit(t, "#recovery", a.codes[2])
	a.shows(t, "You are logged in")
	a.open(t, "/account")
	a.click(t, `[aria-label="Remove: Authenticator app"]`)
	a.shows(t, "The second factor is removed.")
	for _, c := range []struct{ old, to, at string }{
		{"wrong password", "a newer password", "/account?form=password&reason=refused"},
		{password, "password123", "/account?form=password&reason=common"},
		{password, "a newer password", "/account?outcome=password-set"},
	} {
		if !evaluate[bool](t, a.fixture, `document.querySelector("#new").closest("details").open`) {
			a.press(t, "Change the password")
		}
		a.fill(t, "#password", c.old)
		a.fill(t, "#new", c.to)
		a.press(t, "Set the new password")
		a.at(t, c.at)
	}
	a.logOut(t)
	a.enterPassword(t, "a newer password")
	a.at(t, "/?validation=email")
}

// mail waits for the next mail.
func (a *account) mail(t *testing.T) mailbox.Mail {
	t.Helper()
	a.read++
	return a.mails.Await(t, address, a.read)[a.read-1]
}

// testMailedCodes adds codes by mail as second factor, logs in with one, and proves by one at the console who the admin
// is.
func (a *account) testMailedCodes(t *testing.T) {
	a.open(t, "/account")
	a.press(t, "Add codes by mail")
	a.shows(t, "Code of the mail that we have sent")
	a.submit(t, "#setup", a.mail(t).Subject)
	a.shows(t, "Keep these codes")
	a.press(t, "I have kept them")
	a.shows(t, "10 are left")

	a.logOut(t)
	a.enterPassword(t, "a newer password")
	a.at(t, "/second-factor?factors=email+recovery")
	a.press(t, "Send a code by mail")
	a.at(t, "/second-factor?factors=email+recovery&mail=sent")
	a.good(t, "page-second-factor-mailed")
	code := a.mail(t).Subject
	a.submit(t, "#mailed", other(code))
	a.at(t, "/second-factor?factors=email+recovery&mail=sent&reason=denied")
	a.shows(t, "That was not right.")
	a.submit(t, "#mailed", code)
	a.at(t, "/?validation=email")
	a.loggedInBy(t, "password+email 2")

	config := filepath.Join(a.folder, "belfry.yaml")
	a.belfry(t, "user", "admin", address, "--config", config)
	a.open(t, "/console/step-up?next=/console/users")
	a.press(t, "Send a code by mail")
	a.shows(t, "Send another code by mail")
	code = a.mail(t).Subject
	a.submit(t, "#mailed", other(code))
	a.shows(t, "the code is wrong")
	a.submit(t, "#mailed", code)
	a.at(t, "/console/users")
	a.belfry(t, "user", "admin", "--revoke", address, "--config", config)

	a.open(t, "/account")
	a.click(t, `[aria-label="Remove: Codes by mail"]`)
	a.shows(t, "The second factor is removed.")
}

// other returns a code that is not the one that was sent.
func other(code string) string {
	if code == "000000" {
		return "111111"
	}
	return "000000"
}

// testLoginByMail logs in by a code, and by a link, which another browser opens in vain.
func (a *account) testLoginByMail(t *testing.T, browser context.Context) {
	a.logOut(t)
	a.open(t, "/login")
	a.press(t, "Log in by mail")
	a.at(t, "/login/mail")
	a.good(t, "page-mail")
	a.submit(t, "#login", address)
	sent := "/login/mail?login=ada%40example.com&mail=sent"
	a.at(t, sent)
	code := a.mail(t).Subject
	a.submit(t, "#code", other(code))
	a.at(t, sent+"&reason=denied")
	a.shows(t, "That code is wrong")
	a.submit(t, "#code", code)
	a.at(t, "/?validation=email")
	a.loggedInBy(t, "code 1")

	a.logOut(t)
	a.open(t, "/login/mail")
	evaluate[bool](t,
		a.fixture, `(document.querySelector("form").insertAdjacentHTML("beforeend", '<input type="hidden" name="kind" value="link">'), true)`)
	a.submit(t, "#login", address)
	a.at(t, sent)
	link, found := strings.CutPrefix(strings.TrimSpace(a.mail(t).Text), a.URL)
	if !found {
		t.Fatalf("the link is %s", link)
	}
	stranger := &fixture{axe: a.axe, URL: a.URL}
	stranger.openTab(t, browser)
	stranger.open(t, link)
	stranger.shows(t, "Nothing was used up.")
	stranger.good(t, "page-mail-other")
	stranger.checkComplaints(t)
	a.open(t, link)
	a.shows(t, "You log in as ada@example.com.")
	a.good(t, "page-mail-link")
	a.press(t, "Log in")
	a.at(t, "/?validation=email")
	a.loggedInBy(t, "link 1")
}

// testDeletion plans the deletion of the account, and takes it back.
func (a *account) testDeletion(t *testing.T) {
	a.open(t, "/account")
	a.click(t, `section[aria-labelledby="data"] summary`)
	a.fill(t, "#delete-password", "a newer password")
	a.good(t, "page-account-deletion")
	a.click(t, `section[aria-labelledby="data"] form > button`)
	a.at(t, "/account?outcome=deletion-planned")
	a.shows(t, "Your account will be deleted at")
	a.press(t, "Keep the account")
	a.at(t, "/account?outcome=deletion-undone")
	a.shows(t, "Delete the account")
}
