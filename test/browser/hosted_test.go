package browser

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"belfry/test/kit"
	"belfry/test/mailbox"
)

// logo is a drawing with a script, which no page runs.
const logo = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 80 20"><rect width="80" height="20" rx="4" fill="#7a1f5c"/>` +
	`<script>parent.document.title = "hacked"</script></svg>`

// TestHostedPages visits every page for people in both languages, with a name, a logo and a color.
func TestHostedPages(t *testing.T) {
	a := &account{mails: mailbox.Start(t), fixture: &fixture{axe: axeScript(t), top: t, folder: t.TempDir(),
		pictures: picturesOfDocs(t, true)}}
	port := kit.FreePort(t)
	a.write(t, "logo.svg", []byte(logo))
	a.write(t, "belfry.yaml", []byte(fmt.Sprintf(`
listen: 127.0.0.1:%[1]d
baseURL: http://localhost:%[1]d
bus: {listen: "127.0.0.1:0"}
branding: {name: Kitchen, logo: logo.svg, color: "#7a1f5c"}
stores: {Users: {expose: {}}}
binaries: {binary: {map: {Users: {picture: {types: [image/*]}}}}}
mailers: {default: {type: smtp, host: localhost, port: %[2]d, tls: none}}
authentication:
  redirects: ["http://127.0.0.1/signed-in"]
  passkeys: {}
  mfa: {policy: optional}
  providers:
    email: {mailInterval: 0s, login: {code: true, link: true}}
    github: {clientID: a, clientSecret: b}
`, port, a.mails.Port)))
	a.serve(t)
	a.URL = fmt.Sprintf("http://localhost:%d", port)
	a.openTab(t, openBrowser(t))
	call(t, a.fixture, network.Enable, network.EnableParams{})
	for _, l := range []spoken{
		{a, "en", "Kitchen is running", "Log in", "Show the password", "Easy to guess", "Register", "Your account",
			"The e-mail address or the password is wrong.", "Confirm your address · Kitchen", "Log out"},
		{a, "de", "Kitchen läuft", "Anmelden", "Passwort anzeigen", "Leicht zu erraten", "Registrieren", "Ihr Konto",
			"Die E-Mail-Adresse oder das Passwort ist falsch.", "Bestätigen Sie Ihre Adresse · Kitchen", "Abmelden"},
	} {
		call(t, a.fixture, network.SetExtraHTTPHeaders,
			network.SetExtraHTTPHeadersParams{Headers: network.Headers{"Accept-Language": l.tag}})
		t.Run(l.tag, l.test)
		a.checkComplaints(t)
	}
	a.checkPictures(t)
}

// spoken has the texts of a language.
type spoken struct {
	*account
	tag, start, login, show, weak, register, account2, wrong, subject, logout string
}

func (h spoken) test(t *testing.T) {
	address := h.tag + "@example.com"
	for name, path := range map[string]string{"login": "/login", "register": "/register", "recovery": "/recovery",
		"login-mail": "/login/mail", "second-factor": "/second-factor?factors=totp+email+recovery+passkey",
		"login-failed": "/login-failed?reason=rejected", "address": "/login/address?change=undo&login=a&token=b",
		"account-nobody": "/account", "authorize": startProgram(t).page(), "new-password": "/recovery?login=a%40b.de&token=x"} {
		h.open(t, path)
		h.inLanguage(t)
		h.good(t, "hosted-"+h.tag+"-"+name)
	}
	h.open(t, "/")
	h.shows(t, h.start)
	h.good(t, "hosted-"+h.tag+"-start")
	h.registers(t, address)
	h.logsIn(t, address)
	h.open(t, "/account")
	h.shows(t, h.account2)
	h.inLanguage(t)
	h.evaluateTrue(t, `[...document.querySelectorAll("form")].every(f => !f.querySelector("input[type=password]") ||
		f.querySelector("input[autocomplete=username]").value === "`+address+`")`)
	h.good(t, "hosted-"+h.tag+"-account")
	h.press(t, h.logout)
	h.at(t, "/")
}

// inLanguage checks the language of the page, and that its logo is shown and its script has not run.
func (h spoken) inLanguage(t *testing.T) {
	t.Helper()
	h.evaluateTrue(t, `document.documentElement.lang === "`+h.tag+`" && document.title.endsWith(" · Kitchen") &&
		document.querySelector("img.logo").naturalWidth > 0`)
}

func (h spoken) evaluateTrue(t *testing.T, expression string) {
	t.Helper()
	h.until(t, func() error {
		if is, err := attempt[bool](h.fixture, expression); err != nil || !is {
			return fmt.Errorf("%s: %t, %w", expression, is, err)
		}
		return nil
	})
}

// registers registers by the mail. The estimate of a password is a text, and a button shows the password, all by keyboard.
func (h spoken) registers(t *testing.T, address string) {
	h.open(t, "/register")
	h.fill(t, "#login", address)
	h.keysIn(t, "#login", "\r")
	h.at(t, "/register?mail=sent")
	mail := h.mails.Await(t, address, 1)[0]
	if from := mail.Header.Get("From"); mail.Subject != h.subject || !strings.Contains(from, "Kitchen") {
		t.Errorf("the mail is %q from %s", mail.Subject, from)
	}
	h.open(t, strings.TrimPrefix(mail.Link(), h.URL))
	h.focused(t, "password")
	h.run(t, chromedp.KeyEvent("passwort"))
	h.shows(t, h.weak)
	h.run(t, chromedp.KeyEvent(" mit neun Lampen"), chromedp.KeyEvent(kb.Tab), chromedp.KeyEvent(" "))
	h.evaluateTrue(t, `document.activeElement.getAttribute("aria-label") === "`+h.show+`" &&
		document.activeElement.ariaPressed === "true" && document.querySelector("#password").type === "text"`)
	h.good(t, "hosted-"+h.tag+"-strength")
	h.run(t, chromedp.KeyEvent(" "))
	h.evaluateTrue(t, `document.querySelector("#password").type === "password"`)
	h.press(t, h.register)
	h.at(t, "/?validation=email")
	h.good(t, "hosted-"+h.tag+"-validated")
	h.press(t, h.logout)
	h.at(t, "/")
}

// logsIn logs in after a wrong password, by keyboard: the form has the address again, and the message has the focus.
func (h spoken) logsIn(t *testing.T, address string) {
	h.open(t, "/login")
	h.fill(t, "#login", address)
	h.fill(t, "#password", "wrong")
	h.keysIn(t, "#password", "\r")
	h.at(t, "/login?reason=denied")
	h.shows(t, h.wrong)
	h.evaluateTrue(t, `document.activeElement.getAttribute("role") === "alert" &&
		document.querySelector("#login").value === "`+address+`"`)
	h.good(t, "hosted-"+h.tag+"-wrong")
	h.run(t, chromedp.KeyEvent(kb.Tab), chromedp.KeyEvent(kb.Tab))
	h.focused(t, "password")
	h.run(t, chromedp.KeyEvent("passwort mit neun Lampen\r"))
	h.at(t, "/?validation=email")
}

func (h spoken) focused(t *testing.T, id string) {
	t.Helper()
	h.evaluateTrue(t, `document.activeElement.id === "`+id+`"`)
}
