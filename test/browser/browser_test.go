// Package browser uses the pages of belfry as people do: in a real browser, on one belfry.
package browser

import (
	"fmt"
	"testing"

	"github.com/chromedp/chromedp"
)

const (
	address  = "ada@example.com"
	password = "a fine password"
)

// TestPages is all tests of this package: each part uses the belfry and the browser as the part before left them.
// A part that needs other objects makes them, in stores or under names of its own.
func TestPages(t *testing.T) {
	f := start(t)
	if !t.Run("the first admin", f.testFirst) {
		return
	}
	f.fillStores(t)
	for _, part := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"web example", f.testWebExample},
		{"application", f.testApplication},
		{"login", f.testLogin},
		{"views", f.testViews},
		{"objects", f.testObjects},
		{"users", f.testUsers},
		{"system", f.testSystem},
		{"api", f.testAPI},
		{"workers", f.testWorkers},
		{"verify", f.testVerify},
		{"live", f.testLive},
		{"end of rights", f.testEndOfRights},
		{"pages", f.testPages},
	} {
		if !t.Run(part.name, part.run) && part.name == "login" {
			return
		}
		f.checkComplaints(t)
	}
}

// fillStores creates what the pages show.
func (f *fixture) fillStores(t *testing.T) {
	t.Helper()
	f.request(t, "POST", "/authors", `{"uuid":"lovelace","name":"Ada Lovelace"}`, nil)
	f.request(t, "POST", "/authors", `{"uuid":"austen","name":"Jane Austen"}`, nil)
	for i, title := range []string{"Sense and Sensibility", "Pride and Prejudice", "Mansfield Park", "Emma", "Persuasion"} {
		f.request(t, "POST", "/books", fmt.Sprintf(`{"uuid":"austen-%d","author":"austen","title":%q,"year":%d}`, i+1, title, 1811+i), nil)
	}
	f.request(t, "POST", "/books", `{"uuid":"notes","author":"lovelace","title":"Notes on the Analytical Engine","year":1843}`, nil)
	f.request(t, "POST", "/auth/email", `{"register":true,"login":"bob@example.com","password":"another password"}`, nil)
}

// testLogin logs in as an admin.
func (f *fixture) testLogin(t *testing.T) {
	f.open(t, "/console")
	f.at(t, "/console/login")
	f.good(t, "console-login")
	f.fill(t, "#login", "bob@example.com")
	f.fill(t, "#password", "another password")
	f.press(t, "Log in")
	f.shows(t, "not an admin")
	f.good(t, "console-not-admin")
	f.press(t, "Log out")
	f.fill(t, "#login", address)
	f.fill(t, "#password", "wrong")
	f.press(t, "Log in")
	f.shows(t, "wrong")
	f.fill(t, "#password", password)
	f.run(t, chromedp.SendKeys(chromedp.CSS("#password"), "\r"))
	f.at(t, "/console/objects")
}

// testViews looks at each page that only shows something.
func (f *fixture) testViews(t *testing.T) {
	for _, page := range []struct{ name, path, shows string }{
		{"console-objects", "/console/objects", "Books"},
		{"console-list", "/console/objects/Books?filter=author+%3D%3D+%22austen%22&sort=year", "Persuasion"},
		{"console-refused-list", "/console/objects/Books?filter=pages+%3D%3D+1", "can't be shown"},
		{"console-new", "/console/objects/Books/new", "schema"},
		{"console-author", "/console/objects/Authors/object/austen", "Copies of Books"},
		{"console-delete", "/console/objects/Authors/object/austen/delete", "5 other objects"},
		{"console-api", "/console/api", "List the ways to log in"},
		{"console-nothing", "/console/nothing", "no page"},
		{"console-users", "/console/users", "bob@example.com_email"},
		{"console-users-new", "/console/users/new", "Who is it?"},
		{"console-system", "/console/system", "all parts work"},
	} {
		t.Run(page.name, func(t *testing.T) {
			f.open(t, page.path)
			f.shows(t, page.shows)
			f.good(t, page.name)
		})
	}
}
