package browser

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"belfry/config"
)

// testSameModel compares the configuration with that of the site.
func (s *site) testSameModel(t *testing.T) {
	load := func(path string) (*config.Config, map[string]map[string]any) {
		t.Helper()
		c, err := config.Load(path, os.LookupEnv)
		if err != nil {
			t.Fatal(err)
		}
		schemas := map[string]map[string]any{}
		for name, st := range c.Stores {
			if st.Schema != "" {
				schemas[name] = properties(t, st.Schema)
			}
			st.Schema = ""
		}
		return c, schemas
	}
	made, typed := load(s.config)
	want, described := load(s.initTemplate(t, "recipes", t.TempDir()))
	if names := slices.Sorted(maps.Keys(want.Stores)); !slices.Equal(slices.Sorted(maps.Keys(made.Stores)), names) {
		t.Fatalf("stores %v, want %v", slices.Sorted(maps.Keys(made.Stores)), names)
	}
	for name, of := range want.Stores {
		if is := made.Stores[name]; !reflect.DeepEqual(is, of) {
			t.Errorf("%s is\n%s\nwant\n%s", name, asText(t, is), asText(t, of))
		}
		for property, of := range described[name] {
			if is := typed[name][property]; fmt.Sprint(is) != fmt.Sprint(of) {
				t.Errorf("%s of %s is %v, want %v", property, name, is, of)
			}
		}
	}
	if is, of := made.Binaries["binary"].Map, want.Binaries["pictures"].Map; !reflect.DeepEqual(is, of) {
		t.Errorf("files in %v, want %v", is, of)
	}
}

func asText(t *testing.T, v any) string {
	t.Helper()
	text, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// properties returns the types of the properties of a schema.
func properties(t *testing.T, path string) map[string]any {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var schema struct {
		Properties map[string]struct{ Type string }
	}
	if err := json.Unmarshal(text, &schema); err != nil {
		t.Fatal(err)
	}
	all := map[string]any{}
	for name, p := range schema.Properties {
		all[name] = p.Type
	}
	return all
}

// testSiteObjects fills the stores by forms: a recipe with a picture, a comment and a rating of it. The admin who
// creates them is their owner.
func (s *site) testSiteObjects(t *testing.T) {
	s.objects(t, "Users")
	s.press(t, address)
	s.typeInto(t, "/name", "Emma")
	s.press(t, "Save")
	s.shows(t, "The object has been saved.")

	s.objects(t, "Recipes")
	s.press(t, "New object")
	s.typeInto(t, "/title", "Waffles")
	s.typeInto(t, "/steps", "Mix, and bake.")
	s.choose(t, "/published", "Yes")
	s.names(t, `"published": true`)
	s.good(t, "console-new-recipe")
	s.press(t, "Create")
	s.shows(t, "The object has been created.")
	s.recipe = s.get(t, `document.querySelector("#uuid").textContent`)
	s.run(t, chromedp.SetUploadFiles(chromedp.CSS("#file-pictures"), []string{dotFile(t)}))
	s.press(t, "Upload")
	s.shows(t, "The file has been added.")

	s.objects(t, "Comments")
	s.press(t, "New object")
	s.typeInto(t, "/text", "With syrup")
	s.names(t, `"text": "With syrup"`) // the form has been exchanged, and is not any more while one is picked
	s.pick(t, "recipe", "Waffles")
	s.press(t, "Create")
	s.shows(t, "The object has been created.")
	s.objects(t, "Ratings")
	s.press(t, "New object")
	s.typeInto(t, "/stars", "4")
	s.names(t, `"stars": 4`)
	s.pick(t, "recipe", "Waffles")
	s.press(t, "Create")
	s.shows(t, "The object has been created.")

	s.objects(t, "Recipes")
	s.shows(t, "Waffles")
	s.shows(t, "Secret soup")
}

// objects opens the list of a store.
func (s *site) objects(t *testing.T, store string) {
	t.Helper()
	s.press(t, "Objects")
	s.at(t, "/console/objects")
	s.click(t, fmt.Sprintf("main a[href=%q]", "/console/objects/"+store))
	s.at(t, "/console/objects/"+store)
}

// pick searches the object that a reference names.
func (s *site) pick(t *testing.T, field, name string) {
	t.Helper()
	s.fill(t, fmt.Sprintf("[name=%q]", "q."+field), name)
	s.click(t, fmt.Sprintf("[name=%q]", "choose."+field))
	s.names(t, fmt.Sprintf(`"%s": "`, field))
}

// testSiteRules asks the rule tester who may do what: nobody, the owner of a recipe, and another user.
func (s *site) testSiteRules(t *testing.T) {
	const other = "bob@example.com"
	s.press(t, "Manage users")
	s.press(t, "Create a user")
	s.fill(t, "#login", other)
	s.fill(t, "#password", password)
	s.click(t, "[name=validated]")
	s.press(t, "Create")
	s.shows(t, "The user is created")

	s.objects(t, "Recipes")
	s.press(t, "Secret soup")
	s.press(t, "Test who may do what")
	s.at(t, "/console/model/Recipes?uuid="+s.draft)
	s.answers(t, "get", "", "", "denied", "object.published")
	s.answers(t, "get", other, "", "denied", "object.published")
	s.answers(t, "get", address, "", "allowed", "isOwner")
	s.answers(t, "update", other, `{"title": "Mine"}`, "denied", "")
	evaluate[bool](t, s.fixture, `(document.querySelectorAll("main > section:not([aria-labelledby=test])")
		.forEach(section => section.remove()), true)`) // the picture has the rule tester alone
	s.good(t, "console-rules")

	s.stores(t)
	s.press(t, "Comments")
	s.at(t, "/console/model/Comments")
	s.answers(t, "create", other, fmt.Sprintf(`{"text": "x", "recipe": %q}`, s.draft), "denied",
		"linked.recipe.published")
	s.answers(t, "create", other, fmt.Sprintf(`{"text": "x", "recipe": %q}`, s.recipe), "allowed",
		"linked.recipe.published")
}

// answers fills in the rule tester, and waits for its answer: whether the user may do it, and the part that decides, if
// the rule has several.
func (s *site) answers(t *testing.T, operation, user, sent, want, decides string) {
	t.Helper()
	s.choose(t, "operation", operation)
	s.typeInto(t, "user", user)
	if sent != "" {
		if !evaluate[bool](t, s.fixture, `document.querySelector("[aria-labelledby=test] details").open`) {
			s.press(t, "Input, and a rule to try")
		}
		s.typeInto(t, "input", sent)
	}
	evaluate[bool](t, s.fixture, `(document.querySelector("#tested").replaceChildren(), true)`)
	s.press(t, "Test")
	s.until(t, func() error {
		answer, err := attempt[string](s.fixture, `document.querySelector("#tested").innerText`)
		if err != nil {
			return err
		}
		parts, err := attempt[string](s.fixture, `[...document.querySelectorAll("#tested tbody tr")]
			.filter(row => row.querySelector(".tag")?.textContent === "decides")
			.map(row => row.querySelector("code").textContent).join()`)
		if err == nil && (!strings.HasPrefix(answer, want) || !strings.Contains(parts, decides)) {
			err = fmt.Errorf("%s by %q: %q decides, not %q:\n%s", operation, user, parts, decides, answer)
		}
		return err
	})
}

// testSitePage serves the page of the tutorial, and finds the objects on it.
func (s *site) testSitePage(t *testing.T) {
	text, err := os.ReadFile("../../docs/tutorial/recipes.md")
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, m := range block.FindAllStringSubmatch(string(text), -1) {
		if file := named.FindStringSubmatch(m[1]); file != nil && strings.HasPrefix(file[2], "site/") {
			files[file[2]] += m[3]
		}
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(s.folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s.run(t, chromedp.Navigate(s.URL+"/"), chromedp.WaitVisible(chromedp.CSS("#account a")))
	for _, shown := range []string{"Waffles", "by Emma", "Mix, and bake.", "4.0 stars of 1", "Emma: With syrup",
		"Secret soup"} {
		s.shows(t, shown)
	}
	if _, err := attempt[bool](s.fixture, `document.querySelector("img").decode().then(() => true)`,
		chromedp.EvalAwaitPromise); err != nil {
		t.Error(err)
	}
	visitor := &fixture{URL: s.URL}
	visitor.openTab(t, s.tab)
	visitor.run(t, chromedp.Navigate(s.URL+"/"), chromedp.WaitVisible(chromedp.CSS("#account a")))
	visitor.shows(t, "Waffles")
	if text := visitor.text(t); strings.Contains(text, "Secret soup") {
		t.Errorf("a visitor reads a draft:\n%s", text)
	}
}
