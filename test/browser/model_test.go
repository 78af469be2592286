package browser

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

const (
	configuration = "/console/configuration"
	dishesForms   = configuration + "/stores/Dishes"
)

// modelViews are the pages of the model and the forms that change it.
var modelViews = []page{
	{"console-model", "/console/model", "New store"},
	{"console-model-store", "/console/model/Dishes", "What callers may do over HTTP"},
	{"console-model-new-store", configuration + "/new-store", "Who may do what"},
	{"console-model-routes", dishesForms + "/edit/routes", "Served over HTTP"},
	{"console-model-rules", dishesForms + "/edit/rules", "Only owners"},
	{"console-model-field-rules", dishesForms + "/edit/field-rules", "Rules of fields of Dishes"},
	{"console-model-indexes", dishesForms + "/edit/indexes", "Indexes, unique values and search of Dishes"},
	{"console-model-links", dishesForms + "/edit/links", "References and copies of Dishes"},
	{"console-model-mappings", dishesForms + "/edit/mappings", "Mappings and aggregates of Dishes"},
	{"console-model-computed", dishesForms + "/edit/computed", "Computed fields of Dishes"},
	{"console-model-store-settings", dishesForms + "/edit/settings", "Settings of Dishes"},
	{"console-model-new-field", dishesForms + "/field", "New field of Dishes"},
	{"console-model-field", dishesForms + "/field?name=minutes", "Field minutes of Dishes"},
	{"console-model-remove-field", dishesForms + "/remove-field?name=minutes", "Objects keep its values."},
	{"console-model-remove", dishesForms + "/remove", "The store is no longer served."},
	{"console-model-settings", configuration + "/settings", "Providers of logins"},
	{"console-model-provider", configuration + "/settings/providers/google", "Secrets"},
	{"console-model-new-provider", configuration + "/settings/providers/own", "Provider own"},
	{"console-model-mailer", configuration + "/settings/mailers/post", "Mailer post"},
	{"console-model-remove-mailer", configuration + "/settings/mailers/post/remove", "Remove the mailer post"},
	{"console-model-limits", configuration + "/limits", "Limits of requests"},
	{"console-model-no-changes", configuration + "/changes", "No admin has changed the configuration here yet."},
}

// TestModel changes the model of a belfry that serves, as admins do in the console.
func TestModel(t *testing.T) {
	f := startStores(t, "model.yaml", "dish.json")
	f.request(t, "POST", "/cooks", `{"uuid":"ada","name":"Ada"}`, nil)
	for _, part := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"views", f.testModelViews},
		{"rules", f.testRuleTester},
		{"rows", f.testModelRows},
		{"faults", f.testModelFaults},
		{"focus", f.testModelFocus},
		{"undo", f.testModelUndo},
		{"two admins", f.testTwoAdmins},
		{"the end of a session", f.testModelEndedSession},
		{"without a script", f.testModelWithoutScript},
	} {
		f.logIn(t) // a login has to be recent for this
		t.Run(part.name, part.run)
		f.checkComplaints(t)
	}
}

func (f *fixture) testModelViews(t *testing.T) { f.visit(t, modelViews) }

// testRuleTester asks whether somebody may do something, and which part of the rule has decided that.
func (f *fixture) testRuleTester(t *testing.T) {
	f.open(t, "/console/model/Dishes")
	f.fill(t, "#test-user", address)
	f.set(t, "operation", "create")
	f.press(t, "Input, and a rule to try")
	f.fill(t, "#test-input", `{"title": "Soup"}`)
	f.press(t, "Test")
	f.shows(t, "allowed")
	f.fill(t, "#test-rule", `user != null && has(input.title) && input.title == "Stew"`)
	f.press(t, "Test")
	f.shows(t, "denied")
	f.shows(t, "Parts of the rule")
	f.good(t, "console-model-tested")
	f.fill(t, "#test-rule", `user.(`)
	f.press(t, "Test")
	f.run(t, chromedp.WaitVisible(chromedp.CSS("#tested .problem")))
	f.good(t, "console-model-tested-wrong")
}

// file returns a file of the folder of the configuration.
func (f *fixture) file(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(f.folder, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// leave moves the focus to the next element, after which an edited one is checked.
func (f *fixture) leave(t *testing.T) {
	t.Helper()
	f.keys(t, kb.Tab)
}

// wrong waits until a field of a form says that its value is wrong, to people and to programs that read the page to
// them; "" waits until it says nothing any more.
func (f *fixture) wrong(t *testing.T, name, want string) {
	t.Helper()
	f.until(t, func() error {
		is, err := attempt[[]string](f, fmt.Sprintf(`(input => [input.getAttribute("aria-invalid") ?? "false",
			document.querySelector('[data-wrong="' + input.id + '"]').innerText.trim()])(
			document.querySelector('[name=%q]:not([type=hidden])'))`, name))
		switch {
		case err != nil:
		case want == "" && (is[0] != "false" || is[1] != ""), want != "" && is[0] != "true",
			!strings.Contains(is[1], want):
			err = fmt.Errorf("%s is invalid: %s, and says %q, not %q", name, is[0], is[1], want)
		}
		return err
	})
}

// testModelRows makes a store in a form whose rows are added and removed. It is validated while it is typed, reviewed,
// and served without a restart.
func (f *fixture) testModelRows(t *testing.T) {
	f.open(t, "/console/model")
	f.press(t, "New store")
	f.at(t, configuration+"/new-store")
	f.fill(t, `[name="/name"]`, "Dishes")
	f.leave(t)
	f.wrong(t, "/name", "There is a store of this name.")
	f.fill(t, `[name="/name"]`, "Menus")
	f.leave(t)
	f.wrong(t, "/name", "")
	f.set(t, "/access", `"everyone"`)
	f.add(t, "/fields", "/fields/1/name")
	f.value(t, "/name", "Menus")
	f.focusOn(t, "/fields/1/name")
	f.fill(t, `[name="/fields/1/name"]`, "title")
	f.leave(t)
	f.wrong(t, "/fields/1/name", "There is a field of this name.")
	f.good(t, "console-model-rows")
	f.fill(t, `[name="/fields/1/name"]`, "day")
	f.set(t, "/fields/1/type", `"date"`)
	f.wrong(t, "/fields/1/name", "")
	f.add(t, "/fields", "/fields/2/name")
	f.fill(t, `[name="/fields/2/name"]`, "dish")
	f.set(t, "/fields/2/type", `"reference"`)
	f.wrong(t, "/fields/2/store", "Choose the store")
	f.set(t, "/fields/2/store", `"Dishes"`)
	f.wrong(t, "/fields/2/store", "")
	f.add(t, "/fields", "/fields/3/name")
	f.click(t, `button[name="remove"][value="/fields/3"]`)
	f.until(t, func() error {
		rows, err := attempt[string](f, `[...document.querySelectorAll('[name$="/name"]')].map(e => e.value).join(" ")`)
		if err == nil && rows != "Menus title day dish" {
			err = fmt.Errorf("the form has %q", rows)
		}
		return err
	})
	before := f.file(t, "belfry.yaml")
	f.press(t, "Review the change")
	f.shows(t, "What happens then")
	f.shows(t, "Menus:")
	f.good(t, "console-model-review")
	if after := f.file(t, "belfry.yaml"); after != before {
		t.Errorf("a review has written %s", after)
	}
	f.press(t, "Back to the form")
	f.value(t, "/fields/2/name", "dish")
	f.press(t, "Review the change")
	f.press(t, "Apply the change")
	f.shows(t, "The configuration has been changed: ")
	f.request(t, "POST", "/menus", `{"uuid":"easter","title":"Easter","day":"2024-03-31"}`, nil)
	f.open(t, "/console/objects/Menus")
	f.shows(t, "Easter")
	after := f.file(t, "belfry.yaml")
	for _, line := range []string{"# The model that the console shows and changes.", "# what the menu needs",
		"  Menus:"} {
		if !strings.Contains(after, line) {
			t.Errorf("the file has no %q:\n%s", line, after)
		}
	}
}

// focusOn waits until an input has the focus.
func (f *fixture) focusOn(t *testing.T, name string) {
	t.Helper()
	f.until(t, func() error {
		is, err := attempt[string](f, `document.activeElement.name ?? ""`)
		if err == nil && is != name {
			err = fmt.Errorf("the focus is at %q", is)
		}
		return err
	})
}

// testModelFaults has what is wrong at its field, while it is typed and when it is sent.
func (f *fixture) testModelFaults(t *testing.T) {
	before := f.file(t, "belfry.yaml")
	f.open(t, dishesForms+"/edit/rules")
	f.fill(t, `[name="/policy/update"]`, "user.(")
	f.leave(t)
	f.wrong(t, "/policy/update", "Syntax error")
	f.press(t, "Review the change")
	f.shows(t, "The configuration would have problems")
	f.wrong(t, "/policy/update", "Syntax error")
	f.good(t, "console-model-faults")
	f.fill(t, `[name="/policy/update"]`, "user != null")
	f.leave(t)
	f.wrong(t, "/policy/update", "")
	if !f.asks(t) {
		t.Error("the browser does not ask before what was typed is lost")
	}

	f.open(t, dishesForms+"/remove")
	f.fill(t, "#confirmed", "dishes")
	f.press(t, "Review the change")
	f.run(t, chromedp.WaitVisible(chromedp.CSS("#checked .problem")))
	f.value(t, "confirmed", "dishes")
	f.good(t, "console-model-not-confirmed")

	f.open(t, configuration+"/settings/providers/google")
	f.click(t, `input[name="set:secret:authentication.providers.google.clientSecret"]`)
	f.press(t, "Review the change")
	f.shows(t, "It has the secret")
	f.good(t, "console-model-secret")
	if text := f.get(t, `document.documentElement.outerHTML`); strings.Contains(text, "not-to-be-shown") {
		t.Error("the page has the secret")
	}
	if after := f.file(t, "belfry.yaml"); after != before {
		t.Errorf("reviews have written %s", after)
	}
}

// testModelUndo changes rules and indexes, and undoes the change.
func (f *fixture) testModelUndo(t *testing.T) {
	before := f.file(t, "belfry.yaml")
	f.open(t, "/console/model/Dishes")
	f.press(t, "Edit indexes")
	f.add(t, "/indexes", "/indexes/2")
	f.fill(t, `[name="/indexes/2"]`, "course")
	f.press(t, "Review the change")
	f.press(t, "Apply the change")
	f.shows(t, "The configuration has been changed: stores.Dishes.indexes.")
	f.at(t, "/console/model/Dishes")
	f.shows(t, "course")
	f.open(t, configuration+"/changes")
	f.shows(t, "stores.Dishes.indexes")
	f.good(t, "console-model-changes")
	f.click(t, "tbody tr:first-child a.button")
	f.shows(t, "Undo the change")
	f.good(t, "console-model-undo")
	f.press(t, "Undo the change")
	f.shows(t, "has been undone.")
	f.shows(t, "undoes ")
	if after := f.file(t, "belfry.yaml"); after != before {
		t.Errorf("after the undo the file is %s", after)
	}
}
