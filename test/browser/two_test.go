package browser

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"belfry/test/kit"
)

// Two belfrys on one host, at two ports, have one jar of cookies. With names of their own they do not log each other
// out, also where one of them had the name of the other before: who is logged in stays so.
func TestTwoBelfrysOnOneHost(t *testing.T) {
	browser := openBrowser(t)
	var both [2]*fixture
	for i := range both {
		f := &fixture{top: t, folder: t.TempDir(), worksOnly: true}
		port := kit.FreePort(t)
		f.write(t, "belfry.yaml", fmt.Appendf(nil, `
listen: 127.0.0.1:%[1]d
baseURL: http://localhost:%[1]d
bus: {listen: ""}
stores: {Users: {expose: {}}}
authentication:
  cookie: belfry
  providers: {email: {postValidation: true, skipEmailValidation: true}}
`, port))
		both[i] = f
		f.restart(t, fmt.Sprintf("http://localhost:%d", port))
	}
	one, two := both[0], both[1]
	one.openTab(t, browser)
	two.tab = one.tab // so they have one jar of cookies

	one.registerAs(t, "ada@example.com")
	// The other gets a name of its own before anybody logs in there.
	two.rename(t, "shop")
	two.registerAs(t, "bob@example.com")
	one.loggedInAs(t, "ada@example.com")
	two.loggedInAs(t, "bob@example.com")

	// Another name logs nobody out, and is that of the next login.
	one.rename(t, "library")
	two.loggedInAs(t, "bob@example.com")
	one.loggedInAs(t, "ada@example.com")
	one.press(t, "Log out")
	one.at(t, "/")
	one.open(t, "/account")
	one.shows(t, "Log in to see your account.")
	two.loggedInAs(t, "bob@example.com")
	one.open(t, "/login")
	one.fill(t, "#login", "ada@example.com")
	one.fill(t, "#password", password)
	one.press(t, "Log in")
	one.shows(t, "Welcome, ")
	two.rename(t, "belfry") // the name that the other had, and whose cookie the browser may have
	one.loggedInAs(t, "ada@example.com")
	two.loggedInAs(t, "bob@example.com")
}

// restart starts belfry, at the URL that it had.
func (f *fixture) restart(t *testing.T, url string) {
	t.Helper()
	if f.server != nil {
		if err := f.server.Stop(); err != nil {
			t.Fatal(err)
		}
	}
	f.serve(t)
	f.URL = url
}

// rename gives the cookie of sessions another name.
func (f *fixture) rename(t *testing.T, name string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(f.folder, "belfry.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.Split(text, []byte("\n"))
	for i, line := range lines {
		if bytes.HasPrefix(line, []byte("  cookie: ")) {
			lines[i] = []byte("  cookie: " + name)
		}
	}
	f.write(t, "belfry.yaml", bytes.Join(lines, []byte("\n")))
	f.restart(t, f.URL)
}

func (f *fixture) registerAs(t *testing.T, login string) {
	t.Helper()
	f.open(t, "/register")
	f.fill(t, "#login", login)
	f.fill(t, "#password", password)
	f.press(t, "Register")
	f.shows(t, "Welcome, ")
}

func (f *fixture) loggedInAs(t *testing.T, login string) {
	t.Helper()
	f.open(t, "/account")
	f.shows(t, login)
}
