package browser

import (
	"fmt"
	"testing"

	"github.com/chromedp/chromedp"

	"belfry/test/process"
)

// TestFirstSteps goes from a template without stores to five ticks, by what the page of the first steps offers.
func TestFirstSteps(t *testing.T) {
	s := &site{fixture: &fixture{top: t, folder: t.TempDir(), axe: axeScript(t)}}
	s.config = s.initTemplate(t, "empty", s.folder)
	s.server = process.ServePlain(t, s.config, "--listen", "127.0.0.1:0")
	s.URL = s.server.URL
	s.tab = openBrowser(t)
	go s.listen(chromedp.Console(s.tab))
	s.open(t, firstLink.FindStringSubmatch(s.server.Banner)[1])
	s.fill(t, "#login", address)
	s.fill(t, "#password", password)
	s.press(t, "Make me the admin")
	s.at(t, "/console/start")
	s.shows(t, "5 steps are left.")
	s.good(t, "console-first-steps")

	s.press(t, "Skip")
	s.shows(t, "4 steps are left.") // nothing is ticked by that
	if done := s.ticked(t); done != 0 {
		t.Errorf("%d steps are ticked", done)
	}
	s.click(t, `main a[href$="/configuration/new-store"]`)
	s.typeInto(t, "/name", "Recipes")
	s.choose(t, "/access", "readers")
	s.typeInto(t, "/fields/0/name", "title")
	s.apply(t, "Recipes")
	s.steps(t, 1)
	s.press(t, "New object of Recipes")
	s.typeInto(t, "/title", "Soup")
	s.press(t, "Create")
	s.shows(t, "The object has been created.")
	s.steps(t, 2)
	s.press(t, "Send a test mail")
	s.fill(t, `input[type="email"]`, address)
	s.press(t, "Send a test mail")
	s.shows(t, "was written into the folder")
	s.steps(t, 3)
	s.press(t, "Create a key")
	s.press(t, "Make an API key")
	s.fill(t, "#key-name", "first")
	s.press(t, "Make the key")
	s.shows(t, "first")
	key := s.get(t, `document.querySelector("#token").textContent || document.querySelector("#token").value`)
	s.request(t, "GET", "/auth/me", "", nil, "Authorization", "Bearer "+key)
	s.steps(t, 4)
	s.press(t, "New user")
	s.fill(t, "main #login", "grace@example.com")
	s.fill(t, "#password", password)
	s.click(t, `[name="admin"]`)
	s.press(t, "Create")
	s.shows(t, "grace@example.com")
	s.steps(t, 5)
	s.good(t, "console-all-steps")
	s.open(t, "/console")
	s.at(t, "/console/objects")
}

// ticked returns how many steps are ticked.
func (s *site) ticked(t *testing.T) int {
	t.Helper()
	return evaluate[int](t, s.fixture, `document.querySelectorAll(".steps .tag.good").length`)
}

// steps opens the page of the first steps by the first page of the console, and waits for ticks.
func (s *site) steps(t *testing.T, done int) {
	t.Helper()
	s.until(t, func() error {
		s.open(t, "/console/start")
		if is := s.ticked(t); is != done {
			return fmt.Errorf("%d steps are ticked, not %d", is, done)
		}
		return nil
	})
}
