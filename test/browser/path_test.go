package browser

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"belfry/test/backing"
	"belfry/test/kit"
)

// TestPagesBelowAPath uses belfry behind an nginx that has it at /api, and nothing anywhere else: every form, every
// link and every file of a page has to be there.
func TestPagesBelowAPath(t *testing.T) {
	browser := openBrowser(t)
	for _, c := range []struct {
		name  string
		strip bool
	}{{"passed on", false}, {"removed", true}} {
		t.Run(c.name, func(t *testing.T) {
			f := &fixture{top: t, folder: t.TempDir(), worksOnly: true}
			f.openTab(t, browser)
			port := kit.FreePort(t)
			proxy := backing.StartNginxAt(t, fmt.Sprintf("127.0.0.1:%d", port), "/api", c.strip)
			base := strings.Replace(proxy.URL, "127.0.0.1", "localhost", 1)
			f.write(t, "belfry.yaml", fmt.Appendf(nil, `
listen: 127.0.0.1:%d
baseURL: %s
proxies: [127.0.0.1]
bus: {listen: "127.0.0.1:0"}
stores:
  Books: {expose: {list: true, events: true}, uuid: client}
  Users: {expose: {}}
authentication:
  redirects: ["http://127.0.0.1/signed-in"]
  passkeys: {}
  providers: {email: {postValidation: true, skipEmailValidation: true, mailInterval: 0s, login: {code: true, link: true}}}
`, port, base))
			f.serve(t)
			f.URL = base

			found := firstLink.FindStringSubmatch(f.server.Banner)
			if found == nil || !strings.Contains(f.server.Banner, base+found[1]) {
				t.Fatalf("no link to %s:\n%s", base, f.server.Banner)
			}
			f.open(t, found[1])
			f.fill(t, "#login", "root@example.com")
			f.fill(t, "#password", password)
			f.press(t, "Make me the admin")
			f.at(t, "/api/console/start")
			f.press(t, "Dismiss")
			f.at(t, "/api/console/objects")
			f.request(t, "POST", "/books", `{"uuid":"emma","title":"Emma"}`, nil)
			f.crawlConsole(t)
			f.press(t, "Log out")
			f.at(t, "/api/console/login")
			f.sendAllForms(t)
			for _, name := range []string{"start", "login", "account"} {
				f.open(t, hosted[name].path)
				f.within(t)
			}
		})
	}
}

// crawlConsole follows the links of the console, and checks that nothing of a page is missing.
func (f *fixture) crawlConsole(t *testing.T) {
	t.Helper()
	seen, next := map[string]bool{}, []string{"/console/objects", "/console/objects/Books/new", "/console/nothing"}
	for len(next) > 0 {
		path := next[0]
		if next = next[1:]; seen[path] {
			continue
		}
		seen[path] = true
		f.open(t, path)
		next = append(next, f.within(t)...)
	}
	if len(seen) < 20 {
		t.Errorf("the console has %d pages", len(seen))
	}
	f.open(t, "/console/live")
	f.open(t, "/console/objects/Books/object/emma")
	f.shows(t, "Store.Saved") // a fragment that htmx has loaded
	f.checkComplaints(t)
}

// within checks that all that a page names is below the base URL, and that what it has loaded was there. It returns the
// links to pages of the console.
func (f *fixture) within(t *testing.T) (console []string) {
	t.Helper()
	f.run(t, chromedp.WaitReady(chromedp.CSS("main")))
	for _, failed := range evaluate[[]string](t,
		f, `performance.getEntriesByType("resource").filter(e => e.responseStatus >= 400).map(e => e.responseStatus + " " + e.name)`) {
		t.Errorf("at %s: %s", f.get(t, `location.href`), failed)
	}
	for _, link := range evaluate[[]string](t, f,
		`[...document.querySelectorAll("a[href], form[action], link[href], script[src]")]
		.map(e => new URL(e.getAttribute("href") || e.getAttribute("action") || e.getAttribute("src"), location.href).href).filter(l => l.startsWith(location.origin))`) {
		path, ok := strings.CutPrefix(link, f.URL)
		if !ok {
			t.Errorf("%s names %s", f.get(t, `location.href`), link)
			continue
		}
		path, _, _ = strings.Cut(path, "#")
		u, err := url.Parse(path)
		if err == nil && strings.HasPrefix(path, "/console/") && !strings.Contains(path, "/assets/") &&
			!strings.HasSuffix(u.Path, ".json") && len(u.RawQuery) == 0 &&
			(!strings.HasPrefix(path, "/console/docs/") || path == "/console/docs/") &&
			!strings.Contains(path, "/logout") && !strings.Contains(path, "/stop") &&
			!strings.Contains(path, "/check") && !strings.Contains(path, "/history") {
			console = append(console, path)
		}
	}
	return console
}
