package browser

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"

	"belfry/pkg/app/starter"
	"belfry/test/process"
)

// site is a belfry whose model is built in the console.
type site struct {
	*fixture
	config string // path of the configuration
}

// testRecipeSite builds the recipe site of the tutorial in the console: from the configuration of a newcomer, which has
// no stores, to its page. Each step begins on the page where the step before has led.
func (f *fixture) testRecipeSite(t *testing.T) {
	s := &site{fixture: &fixture{top: t, folder: t.TempDir(), worksOnly: f.worksOnly, axe: f.axe, pictures: f.pictures}}
	s.config = filepath.Join(s.folder, filepath.FromSlash(starter.ConfigFile))
	if out, err := exec.CommandContext(t.Context(), process.Commands(t), "init", "--template", "empty",
		s.folder).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	s.server = process.ServePlain(t, s.config, "--listen", "127.0.0.1:0")
	s.URL = s.server.URL
	s.openTab(t, f.tab)
	go s.leaves()
	s.makeFirstAdmin(t)

	for _, step := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"first store", s.testFirstStore},
		{"model", s.testModel},
		{"same model", s.testSameModel},
		{"objects", s.testSiteObjects},
		{"rules", s.testSiteRules},
		{"page", s.testSitePage},
	} {
		if !t.Run(step.name, step.run) {
			return
		}
		s.checkComplaints(t)
	}
}

// testFirstStore goes from the start page to the first object, by what each page offers next.
func (s *site) testFirstStore(t *testing.T) {
	s.open(t, "/console")
	s.shows(t, "There is no store for your own objects yet.")
	s.variant(t, "start")
	s.press(t, "Create the first store")
	s.typeInto(t, "/name", "Recipes")
	s.choose(t, "/access", "readers")
	s.typeInto(t, "/fields/0/name", "title")
	s.addField(t, 1, "steps", "text")
	s.addField(t, 2, "published", "boolean")
	s.addField(t, 3, "user", "reference")
	s.choose(t, "/fields/3/store", "Users")
	s.variant(t, "new-store")
	s.press(t, "Review the change")
	s.shows(t, "What happens then")
	s.variant(t, "review")
	s.press(t, "Apply the change")
	s.shows(t, "The configuration has been changed")
	s.variant(t, "model")
	s.press(t, "New object")
	s.shows(t, "Create")
	s.variant(t, "new-object")
	s.typeInto(t, "/title", "Waffles")
	s.press(t, "Create")
	s.shows(t, "The object has been created.")
}

func (s *site) testModel(t *testing.T)       {}
func (s *site) testSameModel(t *testing.T)   {}
func (s *site) testSiteObjects(t *testing.T) {}
func (s *site) testSiteRules(t *testing.T)   {}
func (s *site) testSitePage(t *testing.T)    {}

// named is the selector of an input.
func input(name string) string { return fmt.Sprintf("main [name=%q]:not([type=hidden])", name) }

// typeInto types into an input, in place of what it has.
func (s *site) typeInto(t *testing.T, name, text string) {
	t.Helper()
	s.fill(t, input(name), text)
}

// choose chooses an option by typing its label.
func (s *site) choose(t *testing.T, name, label string) {
	t.Helper()
	s.run(t, chromedp.WaitVisible(chromedp.CSS(input(name))), chromedp.SendKeys(chromedp.CSS(input(name)), label))
	if is := s.get(t, fmt.Sprintf(`document.querySelector(%q).selectedOptions[0].label`, input(name))); is != label {
		t.Fatalf("%s is %q, not %q", name, is, label)
	}
}

// addField adds a row to the fields of a new store.
func (s *site) addField(t *testing.T, row int, name, kind string) {
	t.Helper()
	at := fmt.Sprintf("/fields/%d/", row)
	s.add(t, "/fields", at+"name")
	s.typeInto(t, at+"name", name)
	s.choose(t, at+"type", kind)
}

// apply reviews a change and applies it.
func (s *site) apply(t *testing.T, done string) {
	t.Helper()
	s.press(t, "Review the change")
	s.shows(t, "What happens then")
	s.press(t, "Apply the change")
	s.at(t, done)
	s.shows(t, "The configuration has been changed")
}

// TestRecipeSite is the part of TestPages alone.
func TestRecipeSite(t *testing.T) {
	f := &fixture{top: t, worksOnly: true, axe: axeScript(t), tab: openBrowser(t)}
	f.testRecipeSite(t)
	_ = os.Stdout
}
