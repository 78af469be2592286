package browser

import (
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"testing"

	"belfry/pkg/app/starter"
	"belfry/test/process"
)

// site is a belfry whose model is built in the console.
type site struct {
	*fixture
	config string // path of the configuration
	recipe string // uuid of one that is published
	draft  string // uuid of one that is not
}

// TestRecipeSite is a part of TestPages by itself, without how the pages look.
func TestRecipeSite(t *testing.T) {
	f := &fixture{top: t, worksOnly: true, tab: openBrowser(t)}
	f.testRecipeSite(t)
}

// testRecipeSite builds the recipe site in the console: from a configuration that has no stores, to
// its page. What is pressed is on the page where the step before has led.
func (f *fixture) testRecipeSite(t *testing.T) {
	s := &site{fixture: &fixture{top: t, folder: t.TempDir(), worksOnly: f.worksOnly, axe: f.axe, pictures: f.pictures}}
	s.config = s.initTemplate(t, "empty", s.folder)
	s.server = process.ServePlain(t, s.config, "--listen", "127.0.0.1:0")
	s.URL = s.server.URL
	s.openTab(t, f.tab)
	go s.leaves()
	for _, step := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"first object", s.testFirstObject},
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

// initTemplate writes a template, and returns the path of its configuration.
func (s *site) initTemplate(t *testing.T, template, folder string) string {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), process.Commands(t), "init", "--template", template,
		folder).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return filepath.Join(folder, filepath.FromSlash(starter.ConfigFile))
}

// testFirstObject goes from the link of the first admin to the first object, by what each page offers next.
func (s *site) testFirstObject(t *testing.T) {
	s.open(t, firstLink.FindStringSubmatch(s.server.Banner)[1])
	s.fill(t, "#login", address)
	s.fill(t, "#password", password)
	s.press(t, "Make me the admin")
	s.at(t, "/console/start")
	s.press(t, "Dismiss")
	s.shows(t, "There is no store for your own objects yet.")
	s.good(t, "console-empty")
	s.press(t, "Create the first store")
	s.typeInto(t, "/name", "Recipes")
	s.choose(t, "/access", "readers")
	s.typeInto(t, "/fields/0/name", "title")
	s.addField(t, 1, "steps", "text")
	s.addField(t, 2, "published", "boolean")
	s.addField(t, 3, "user", "reference")
	s.choose(t, "/fields/3/store", "Users")
	s.good(t, "console-new-store")
	s.apply(t, "Recipes")
	s.press(t, "New object")
	s.typeInto(t, "/title", "Secret soup")
	s.press(t, "Create")
	s.shows(t, "The object has been created.")
	s.draft = s.get(t, `document.querySelector("#uuid").textContent`)
}

// edit opens a form of the model of a store.
func (s *site) form(t *testing.T, store, button string) {
	t.Helper()
	if s.get(t, `location.pathname`) != "/console/model/"+store {
		s.stores(t)
		s.press(t, store)
	}
	s.press(t, button)
	s.shows(t, "Review the change")
}

// stores opens the page of all stores.
func (s *site) stores(t *testing.T) {
	t.Helper()
	s.press(t, "Model")
	s.at(t, "/console/model")
}

// testModel completes the model by the forms of its stores.
func (s *site) testModel(t *testing.T) {
	s.form(t, "Recipes", "Edit rules")
	s.typeInto(t, "/policy/get", "object.published || isOwne")
	s.shows(t, "undeclared reference to 'isOwne'")
	s.typeInto(t, "/policy/get", "object.published || isOwner")
	s.apply(t, "Recipes")
	s.click(t, `a[href$="/field?name=title"]`)
	s.typeInto(t, "/minLength", "1")
	s.typeInto(t, "/maxLength", "200")
	s.apply(t, "Recipes")
	s.form(t, "Recipes", "Add a field")
	s.typeInto(t, "/name", "ingredients")
	s.choose(t, "/type", "array")
	s.apply(t, "Recipes")
	s.form(t, "Recipes", "References and copies")
	s.choose(t, "/references/~r0/onDelete", "cascade")
	s.addNamed(t, "/copies", 0, "author", "/from", "user.name", "/read", "true")
	s.apply(t, "Recipes")
	s.form(t, "Recipes", "Files")
	s.addRow(t, "/binary", "/binary/0/field")
	s.typeInto(t, "/binary/0/field", "pictures")
	s.apply(t, "Recipes")

	s.stores(t)
	s.press(t, "New store")
	s.shows(t, "Who may do what")
	s.typeInto(t, "/name", "Comments")
	s.choose(t, "/access", "readers")
	s.typeInto(t, "/fields/0/name", "text")
	s.addField(t, 1, "recipe", "reference")
	s.choose(t, "/fields/1/store", "Recipes")
	s.addField(t, 2, "user", "reference")
	s.choose(t, "/fields/2/store", "Users")
	s.apply(t, "Comments")
	s.form(t, "Comments", "References and copies")
	s.choose(t, "/references/~r0/onDelete", "cascade")
	s.choose(t, "/references/~r0/required", "Yes")
	s.choose(t, "/references/~r1/onDelete", "cascade")
	s.addNamed(t, "/copies", 0, "author", "/from", "user.name", "/read", "true")
	s.addNamed(t, "/copies", 1, "published", "/from", "recipe.published", "/read", "true")
	s.apply(t, "Comments")
	s.form(t, "Comments", "Edit rules")
	s.typeInto(t, "/policy/create", "user != null && linked.recipe.published")
	s.typeInto(t, "/policy/get", "object.published || isOwner")
	s.apply(t, "Comments")
	s.form(t, "Comments", "Rules of fields")
	s.addNamed(t, "/fields", 0, "recipe", "/write", "object == null")
	s.apply(t, "Comments")
	s.form(t, "Comments", "Edit indexes")
	s.addText(t, "/indexes", 0, "recipe, created")
	s.apply(t, "Comments")
	s.form(t, "Comments", "Mappings")
	s.addNamed(t, "/map", 0, "Recipes", "/key", "recipe", "/target", "comments", "/limit", "200")
	s.addText(t, "/map/~r0/fields", 0, "author")
	s.addText(t, "/map/~r0/fields", 1, "text")
	s.addNamed(t, "/map/~r0/aggregates", 0, "comments_count", "", "count()")
	s.press(t, "Review the change")
	s.shows(t, "comments, comments_count of Recipes is filled from the 0 objects of Comments")
	s.good(t, "console-review")
	s.press(t, "Apply the change")
	s.shows(t, "The configuration has been changed")

	s.stores(t)
	s.press(t, "New store")
	s.shows(t, "Who may do what")
	s.typeInto(t, "/name", "Ratings")
	s.choose(t, "/access", "owner")
	s.typeInto(t, "/fields/0/name", "stars")
	s.choose(t, "/fields/0/type", "integer")
	s.addField(t, 1, "recipe", "reference")
	s.choose(t, "/fields/1/store", "Recipes")
	s.set(t, "/fields/1/index", "true")
	s.addField(t, 2, "user", "reference")
	s.choose(t, "/fields/2/store", "Users")
	s.apply(t, "Ratings")
	s.form(t, "Ratings", "References and copies")
	s.choose(t, "/references/~r0/onDelete", "cascade")
	s.choose(t, "/references/~r0/required", "Yes")
	s.choose(t, "/references/~r1/onDelete", "cascade")
	s.apply(t, "Ratings")
	s.form(t, "Ratings", "Rules of fields")
	s.addNamed(t, "/fields", 0, "recipe", "/write", "object == null")
	s.apply(t, "Ratings")
	s.form(t, "Ratings", "Edit indexes")
	s.addText(t, "/unique", 0, "recipe, user")
	s.apply(t, "Ratings")
	s.form(t, "Ratings", "Mappings")
	s.addNamed(t, "/map", 0, "Recipes", "/key", "recipe")
	for i, of := range [][2]string{{"ratings", "count()"}, {"stars", "sum(stars)"}, {"best", "max(stars)"},
		{"last", "max(created)"}} {
		s.addNamed(t, "/map/~r0/aggregates", i, of[0], "", of[1])
	}
	s.apply(t, "Ratings")

	s.form(t, "Recipes", "Computed fields")
	s.addNamed(t, "/computed", 0, "average", "", "double(stars) / double(ratings)")
	s.apply(t, "Recipes")
	s.form(t, "Recipes", "Edit indexes")
	for i, name := range []string{"created", "author", "ratings", "average"} {
		s.addText(t, "/indexes", i, name)
	}
	s.apply(t, "Recipes")
	s.good(t, "console-model")
}

// inputOf is the selector of an input.
func inputOf(name string) string { return fmt.Sprintf("main [name=%q]:not([type=hidden])", name) }

// typeInto types into an input, in place of what it has.
func (s *site) typeInto(t *testing.T, name, text string) {
	t.Helper()
	s.fill(t, inputOf(name), text)
}

// choose chooses an option by typing its label.
func (s *site) choose(t *testing.T, name, label string) {
	t.Helper()
	s.keysIn(t, inputOf(name), label)
	if is := s.get(t, fmt.Sprintf(`document.querySelector(%q).selectedOptions[0].label`, inputOf(name))); is != label {
		t.Fatalf("%s is %q, not %q", name, is, label)
	}
}

// addRow adds a row to a list, and waits until the page has it and is at rest.
func (s *site) addRow(t *testing.T, list, row string) {
	t.Helper()
	s.add(t, list, row)
	s.until(t, func() error {
		busy, err := attempt[bool](s.fixture,
			`!!document.querySelector(".htmx-request, .htmx-swapping, .htmx-settling")`)
		if err == nil && busy {
			err = errors.New("the row is being added")
		}
		return err
	})
}

// addField adds a row to the fields of a new store.
func (s *site) addField(t *testing.T, row int, name, kind string) {
	t.Helper()
	at := fmt.Sprintf("/fields/%d/", row)
	s.addRow(t, "/fields", at+"name")
	s.typeInto(t, at+"name", name)
	s.choose(t, at+"type", kind)
}

// addText adds a row to a list of texts.
func (s *site) addText(t *testing.T, list string, row int, text string) {
	t.Helper()
	at := fmt.Sprintf("%s/%d", list, row)
	s.addRow(t, list, at)
	s.typeInto(t, at, text)
}

// addNamed adds a row with a name to a map. pairs are the inputs below it and their texts in turn.
func (s *site) addNamed(t *testing.T, group string, row int, name string, pairs ...string) {
	t.Helper()
	at := fmt.Sprintf("%s/~r%d", group, row)
	s.addRow(t, group, "name:"+at)
	s.typeInto(t, "name:"+at, name)
	for i := 0; i < len(pairs); i += 2 {
		s.typeInto(t, at+pairs[i], pairs[i+1])
	}
}

// apply reviews a change, applies it, and waits for the page of the store.
func (s *site) apply(t *testing.T, store string) {
	t.Helper()
	s.press(t, "Review the change")
	s.shows(t, "What happens then")
	s.press(t, "Apply the change")
	s.at(t, "/console/model/"+store)
	s.shows(t, "The configuration has been changed")
}
