package browser

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"belfry/test/kit"
	"belfry/test/kit/tlskit"
)

// lanName is a name of a machine in a local network. A browser trusts localhost in many ways, and this one in none.
const lanName = "belfry.lan"

// atName has a Chromium find lanName on this machine, and accept its certificate.
var atName = []chromedp.ExecAllocatorOption{
	chromedp.Flag("host-resolver-rules",
		"MAP "+lanName+" 127.0.0.1, MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost"),
	chromedp.Flag("ignore-certificate-errors", true),
}

// more are pages of the templates in other states, whose forms are others.
var more = map[string][]string{
	"register": {"/register?login=eve%40example.com&token=abc", "/register?mail=sent"},
	"recovery": {"/recovery?login=ada%40example.com&token=abc", "/recovery?mail=sent"},
	"mail":     {"/login/mail?login=ada%40example.com&token=abc", "/login/mail?mail=sent&login=ada%40example.com"},
	"address": {"/login/address?change=undo&login=ada%40example.com&token=abc",
		"/login/address?change=confirm&login=ada%40example.com&token=abc"},
	"second-factor": {"/second-factor?factors=totp+email+recovery&mail=sent"},
	"account":       {"/account?setup=totp", "/account?setup=email"},
}

// TestPagesAtAName sends every form of every page for users at a name that is not localhost, and logs in: browsers say
// less about where a form comes from there, and over http nothing but the origin.
func TestPagesAtAName(t *testing.T) {
	browser := openBrowser(t, atName...)
	for _, c := range []struct{ name, scheme, settings string }{
		{"http", "http", "baseURL: http://" + lanName + ":%d"},
		{"http and hosts", "http", "hosts: [" + lanName + "] # %d"},
		{"https", "https", "baseURL: https://" + lanName + ":%d\nhttp: {tls: {cert: cert.pem, key: key.pem}}"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := &fixture{top: t, folder: t.TempDir(), worksOnly: true}
			f.openTab(t, browser)
			port := kit.FreePort(t)
			tlskit.WriteValid(t, filepath.Join(f.folder, "cert.pem"), filepath.Join(f.folder, "key.pem"), lanName)
			f.write(t, "belfry.yaml", fmt.Appendf(nil, `
listen: 127.0.0.1:%d
%s
bus: {listen: "127.0.0.1:0"}
stores: {Users: {expose: {}}}
authentication:
  redirects: ["http://127.0.0.1/signed-in"]
  providers: {email: {postValidation: true, skipEmailValidation: true, mailInterval: 0s, login: {code: true, link: true}}}
`, port, fmt.Sprintf(c.settings, port)))
			f.serve(t)
			f.URL = fmt.Sprintf("%s://%s:%d", c.scheme, lanName, port)
			f.sendAllForms(t)
		})
	}
}

func (f *fixture) sendAllForms(t *testing.T) {
	t.Helper()
	f.open(t, "/register")
	f.fill(t, "#login", address)
	f.fill(t, "#password", password)
	f.press(t, "Register")
	f.shows(t, "You are logged in")
	f.press(t, "Log out")
	f.shows(t, "belfry is running")
	f.checkComplaints(t)
	program := startProgram(t)
	for _, loggedIn := range []bool{false, true} {
		for _, name := range slices.Sorted(maps.Keys(hosted)) {
			first := hosted[name].path
			if name == "authorize" {
				first = program.page()
			}
			for _, path := range append([]string{first}, more[name]...) {
				sent := f.sendFormsOf(t, path, loggedIn)
				t.Logf("logged in: %t, %s, %s: %d forms", loggedIn, name, path, sent)
				if loggedIn && sent == 0 {
					t.Errorf("%s: no form was sent", path) // there is always that which logs out
				}
			}
		}
	}
	f.checkComplaints(t)
}

// sendFormsOf sends each form of a page as it is, and returns how many there were. What the fields have does not
// matter: a form that is refused for its origin is not read.
func (f *fixture) sendFormsOf(t *testing.T, path string, loggedIn bool) (sent int) {
	t.Helper()
	for ; ; sent++ {
		if f.open(t, path); loggedIn && !strings.Contains(f.text(t), "Logged in as") {
			f.enterPassword(t, password)
			f.shows(t, "Welcome, ") // the page of the login says that somebody is logged in, too
			f.open(t, path)
		}
		if int64(sent) >= evaluate[int64](t, f,
			`document.querySelectorAll("form[method=post]:not([data-options])").length`) {
			return sent
		}
		action := f.get(t, fmt.Sprintf(`(() => {
			window.sent = true;
			const form = document.querySelectorAll("form[method=post]:not([data-options])")[%d];
			HTMLFormElement.prototype.submit.call(form);
			return form.action;
		})()`, sent))
		f.until(t, func() error {
			arrived, err := attempt[bool](f, `!window.sent && document.readyState === "complete"`)
			if err == nil && !arrived {
				err = fmt.Errorf("the form to %s of %s has not arrived", action, path)
			}
			return err
		})
		if status := evaluate[int64](t, f,
			`performance.getEntriesByType("navigation")[0].responseStatus`); status >= 400 {
			t.Errorf("the form to %s of %s is refused with %d:\n%s", action, path, status, f.text(t))
		}
		if kind := f.get(t, `document.contentType`); kind != "text/html" {
			t.Errorf("the form to %s of %s leads to %s:\n%s", action, path, kind, f.text(t))
		}
	}
}
