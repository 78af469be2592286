package browser

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"belfry/test/kit"
)

// hosted are belfry's pages for users, by the name of their template.
var hosted = map[string]struct{ path, shows string }{
	"start":         {"/", "belfry is running"},
	"validated":     {"/?validation=email", "You are logged in"},
	"login":         {"/login", "Log in with a passkey"},
	"register":      {"/register", "At least 8 characters"},
	"recovery":      {"/recovery", "Send the mail"},
	"mail":          {"/login/mail", "Log in"},
	"address":       {"/login/address", "Open the link of the mail"},
	"failed":        {"/login-failed?reason=denied", "Reason: denied"},
	"second-factor": {"/second-factor?factors=totp", "One more step"},
	"account":       {"/account", address},
	"authorize":     {"", "wants to act in your name"}, // at the page of a program
}

// TestSmoke uses the console once, and opens every page of it and every page for users: each works, and the browser has
// no complaint. TestPages and TestAccount, which make test-all runs, do all that people do, and check how each page
// looks.
func TestSmoke(t *testing.T) {
	f := &fixture{top: t, folder: t.TempDir(), worksOnly: true}
	f.serveSmoke(t)
	f.tab = openBrowser(t)
	go f.listen(chromedp.Console(f.tab))
	f.makeFirstAdmin(t)
	f.createObjects(t)

	f.open(t, "/console/objects")
	for _, link := range evaluate[[]string](t, f,
		`[...document.querySelectorAll("#side a")].map(a => a.getAttribute("href"))`) {
		f.open(t, link)
		f.checkComplaints(t)
	}
	f.visit(t, []page{
		{"", "/console/objects/Books?filter=author+%3D%3D+%22austen%22&sort=year", "Lady Susan"},
		{"", "/console/objects/Books/object/lady-susan", "Store.Saved"},
		{"", "/console/users", address},
		{"", "/console/system", "all parts work"},
		{"", "/console/nothing", "no page"},
	})

	templates, err := filepath.Glob(filepath.Join("..", "..", "pkg", "api", "pages", "templates", "*.html"))
	if err != nil || len(templates) == 0 {
		t.Fatalf("%v, %v", templates, err)
	}
	if len(templates) != len(hosted)+2 { // with the layout and parts of pages
		t.Errorf("%d pages are opened, there are templates for %d", len(hosted), len(templates)-2)
	}
	program := startProgram(t)
	for _, template := range templates {
		name := strings.TrimSuffix(filepath.Base(template), ".html")
		if name == "layout" || name == "partials" {
			continue
		}
		p, known := hosted[name]
		if !known {
			t.Errorf("the page %s is not opened: add it", name)
			continue
		}
		if name == "authorize" {
			p.path = program.page()
		}
		f.visit(t, []page{{"", p.path, p.shows}})
	}

	f.open(t, "/account")
	f.press(t, "Log out")
	f.at(t, "/")
	f.enterPassword(t, password)
	f.shows(t, "You are logged in")
	f.checkComplaints(t)
}

// serveSmoke starts a belfry in which every page for users is served.
func (f *fixture) serveSmoke(t *testing.T) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "belfry.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	schema, err := os.ReadFile(filepath.Join("testdata", "book.json"))
	if err != nil {
		t.Fatal(err)
	}
	port := kit.FreePort(t)
	changes := []string{
		"listen: 127.0.0.1:0\n", fmt.Sprintf("listen: 127.0.0.1:%[1]d\nbaseURL: http://localhost:%[1]d\n", port),
		"authentication:\n", "authentication:\n  passkeys: {}\n",
		"skipEmailValidation: true}", "skipEmailValidation: true, login: {code: true, link: true}}",
	}
	for old := range slices.Chunk(changes, 2) {
		if strings.Count(string(text), old[0]) != 1 {
			t.Fatalf("testdata/belfry.yaml has not one %q", old[0])
		}
	}
	f.write(t, "belfry.yaml", []byte(strings.NewReplacer(changes...).Replace(string(text))))
	f.write(t, "book.json", schema)
	f.serve(t)
	f.URL = fmt.Sprintf("http://localhost:%d", port) // what a passkey is bound to is no address
}
