package browser

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"belfry/test/kit"
)

const dishes = `
listen: 127.0.0.1:0
bus: {listen: ""}
stores:
  Cooks: {expose: {}, indexes: [name]}
  Dishes: {expose: {}, schema: dish.json, defaults: true, references: {cook: Cooks}}
  Users: {expose: {}}
binaries: {Pictures: {map: {Dishes: [pictures]}}}
authentication: {providers: {email: {postValidation: true, skipEmailValidation: true}}}
`

// testForms edits objects by the form of their schema, on a belfry of its own, and loses nothing that is typed.
func (f *fixture) testForms(t *testing.T) {
	m := &fixture{top: t, folder: t.TempDir(), worksOnly: true, axe: f.axe}
	schema, err := os.ReadFile(filepath.Join("testdata", "dish.json"))
	if err != nil {
		t.Fatal(err)
	}
	m.write(t, "dish.json", schema)
	m.write(t, "belfry.yaml", []byte(dishes))
	m.serve(t)
	m.openTab(t, f.tab)
	go m.leaves()
	m.makeFirstAdmin(t)
	m.worksOnly = f.worksOnly
	m.request(t, "POST", "/cooks", `{"uuid":"ada","name":"Ada"}`, nil)
	for _, part := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"fields", m.testFields},
		{"the end of a session", m.testEndedSession},
		{"drafts", m.testDrafts},
		{"without a script", m.testFormsWithoutScript},
		{"dropped files", m.testDroppedFiles},
	} {
		t.Run(part.name, part.run)
		m.checkComplaints(t)
	}
}

const newDish = "/console/objects/Dishes/new"

// set sets an input as somebody does who chooses a value.
func (f *fixture) set(t *testing.T, name, value string) {
	t.Helper()
	f.run(t, chromedp.WaitReady(chromedp.CSS(fmt.Sprintf("[name=%q]", name))))
	evaluate[bool](t, f, fmt.Sprintf(`(() => {
		const input = [...document.getElementsByName(%q)].pop();
		if (input.type === "checkbox") input.checked = %[2]q === "true"; else input.value = %[2]q;
		return ["input", "change"].map(type => input.dispatchEvent(new Event(type, {bubbles: true}))).every(Boolean);
	})()`, name, value))
}

// value waits until an input has a value.
func (f *fixture) value(t *testing.T, name, want string) {
	t.Helper()
	f.until(t, func() error {
		is, err := attempt[string](f, fmt.Sprintf(`document.getElementsByName(%q)[0]?.value ?? "no input"`, name))
		if err == nil && is != want {
			err = fmt.Errorf("%s is %q, not %q", name, is, want)
		}
		return err
	})
}

// add adds a row to a list.
func (f *fixture) add(t *testing.T, list, row string) {
	t.Helper()
	f.click(t, fmt.Sprintf(`button[name="add"][value=%q]`, list))
	f.run(t, chromedp.WaitReady(chromedp.CSS(fmt.Sprintf("[name=%q]", row))))
}

// testFields makes an object with each kind of field, in step with its JSON.
func (f *fixture) testFields(t *testing.T) {
	f.open(t, newDish)
	f.value(t, "/minutes", "30")
	f.good(t, "console-form")
	f.fill(t, `[name="/title"]`, "A soup whose name is too long")
	f.names(t, `"title": "A soup whose name is too long"`)
	f.until(t, func() error {
		wrong, err := attempt[string](f, `document.querySelector('[name="/title"]').getAttribute("aria-invalid") ?? ""`)
		if err == nil && wrong != "true" {
			err = fmt.Errorf("the field is not marked")
		}
		return err
	})
	if focus := f.get(t, `document.activeElement.name`); focus != "/title" {
		t.Errorf("the focus is at %s", focus)
	}
	f.press(t, "Create")
	f.run(t, chromedp.WaitReady(chromedp.CSS(`form[data-unsaved="edited"]`))) // it has been sent, and is back
	f.focusOn(t, "/title")
	f.shows(t, "Not valid.")
	f.good(t, "console-form-invalid")
	f.fill(t, `[name="/title"]`, "Soup")
	f.names(t, `"title": "Soup"`)
	f.shows(t, "Valid.")

	f.set(t, "/price", "1.50")
	f.set(t, "/vegan", "true")
	f.set(t, "/course", `"main"`)
	f.set(t, "/day", "2024-05-01")
	f.set(t, "/at", "2024-05-01T10:30")
	f.set(t, "/mail", "ada@example.com")
	f.set(t, "/note", "one\ntwo")
	f.set(t, "/source/page", "7")
	f.set(t, "/extra", `{"a": [1.0]}`)
	f.add(t, "/tags", "/tags/0")
	f.fill(t, `[name="/tags/0"]`, "hot")
	f.add(t, "/tags", "/tags/1")
	f.value(t, "/tags/0", "hot")
	f.fill(t, `[name="/tags/1"]`, "red")
	f.add(t, "/steps", "/steps/0/text")
	f.fill(t, `[name="/steps/0/text"]`, "Cook it")
	f.add(t, "/amounts", "/amounts/~r0")
	f.fill(t, `[name="name:/amounts/~r0"]`, "salt")
	f.fill(t, `[name="/amounts/~r0"]`, "2.0")
	f.click(t, `button[name="remove"][value="/tags/0"]`)
	f.names(t, `"salt": 2.0`)
	f.fill(t, `[name="q.cook"]`, "Ad")
	f.press(t, "Ada")
	f.names(t, `"cook": "ada"`)
	f.good(t, "console-form-filled")

	// The JSON is edited, and the form follows.
	f.edit(t, strings.Replace(f.get(t, `document.querySelector("#text").value`), `"Soup"`, `"Stew"`, 1))
	f.value(t, "/title", "Stew")
	f.set(t, "/vegan", "false")
	f.names(t, `"vegan": false`)
	f.press(t, "Save and new")
	f.at(t, newDish)
	f.shows(t, "has been created.")
	f.value(t, "/title", "")
	uuid := strings.Fields(f.get(t, `document.querySelector("main > .notice > p").textContent`))[2]
	var dish struct {
		Price           float64
		Title, Cook, At string
		Day, Mail, Note string
		Course          string
		Tags            []string
		Steps           []struct{ Text string }
		Amounts         map[string]float64
		Source          struct{ Page int }
	}
	f.request(t, "GET", "/dishes/"+uuid, "", &dish)
	if text := fmt.Sprintf("%+v", dish); text != "{Price:1.5 Title:Stew Cook:ada At:2024-05-01T10:30:00Z "+
		"Day:2024-05-01 Mail:ada@example.com Note:one\ntwo Course:main Tags:[red] Steps:[{Text:Cook it}] "+
		"Amounts:map[salt:2] Source:{Page:7}}" {
		t.Error(text)
	}
}

// logOut ends the session, as another tab does; logIn begins one.
func (f *fixture) logOut(t *testing.T) {
	t.Helper()
	evaluate[bool](t, f, `fetch("/auth/logout", {method: "POST"}).then(() => true)`, chromedp.EvalAwaitPromise)
}

func (f *fixture) logIn(t *testing.T) {
	t.Helper()
	evaluate[bool](t, f, fmt.Sprintf(`fetch("/console/login", {method: "POST", redirect: "manual",
		body: new URLSearchParams({login: %q, password: %q})}).then(() => true)`, address, password),
		chromedp.EvalAwaitPromise)
}

// leaves answers yes when the browser asks whether a page is left.
func (f *fixture) leaves() {
	for _, err := range chromedp.Events(f.tab, cdppage.JavascriptDialogOpening) {
		if err != nil {
			return // the browser has been closed
		}
		_, _ = chromedp.Call(f.tab, cdppage.HandleJavaScriptDialog, cdppage.HandleJavaScriptDialogParams{Accept: true})
	}
}

// asks reports whether the browser asks before the page is left.
func (f *fixture) asks(t *testing.T) bool {
	t.Helper()
	return evaluate[bool](t, f, `!dispatchEvent(new Event("beforeunload", {cancelable: true}))`)
}

func (f *fixture) testEndedSession(t *testing.T) {
	f.open(t, newDish)
	if f.asks(t) {
		t.Error("the browser asks although nothing is edited")
	}
	f.fill(t, `[name="/title"]`, "Broth")
	f.names(t, `"Broth"`)
	if !f.asks(t) {
		t.Error("the browser does not ask")
	}
	f.logOut(t)
	f.press(t, "Create")
	f.shows(t, "You have been logged out, or have to prove again")
	f.at(t, newDish)
	f.good(t, "console-logged-out")
	f.logIn(t)
	f.click(t, "#ended button")
	f.value(t, "/title", "Broth")
	f.press(t, "Create")
	f.shows(t, "The object has been created.")
	if drafts := f.get(t, `JSON.stringify(Object.keys(sessionStorage))`); strings.Contains(drafts, "draft") {
		t.Errorf("a draft is left: %s", drafts)
	}
}

func (f *fixture) testDrafts(t *testing.T) {
	f.open(t, newDish)
	f.fill(t, `[name="/title"]`, "Draft soup")
	f.names(t, `"Draft soup"`)
	f.until(t, func() error {
		kept, err := attempt[string](f, `sessionStorage.getItem("belfry draft " + location.pathname) ?? ""`)
		if err == nil && !strings.Contains(kept, "Draft soup") {
			err = fmt.Errorf("the draft is %q", kept)
		}
		return err
	})
	f.open(t, newDish)
	f.shows(t, "There are unsaved edits from")
	f.good(t, "console-draft")
	f.press(t, "Restore unsaved edits")
	f.value(t, "/title", "Draft soup")
	f.names(t, `"Draft soup"`)
	f.press(t, "Log out")
	f.at(t, "/console/login")
	f.logIn(t)
	f.open(t, newDish)
	f.value(t, "/minutes", "30")
	if text := f.text(t); strings.Contains(text, "unsaved edits") {
		t.Errorf("a draft outlives the logout: %s", text)
	}
}

// forbidScripts forbids pages to run scripts, or allows it again.
func (f *fixture) forbidScripts(t *testing.T, off bool) {
	t.Helper()
	ctx, cancel := kit.Patience(f.tab, patience)
	defer cancel()
	if _, err := chromedp.Call(ctx, emulation.SetScriptExecutionDisabled,
		emulation.SetScriptExecutionDisabledParams{Value: off}); err != nil {
		t.Fatal(err)
	}
}

// goodWithoutScript is good where pages run no scripts: the check needs scripts of its own.
func (f *fixture) goodWithoutScript(t *testing.T, name string) {
	t.Helper()
	f.forbidScripts(t, false)
	f.good(t, name)
	f.forbidScripts(t, true)
}

func (f *fixture) testFormsWithoutScript(t *testing.T) {
	f.forbidScripts(t, true)
	defer f.forbidScripts(t, false)
	f.open(t, newDish)
	f.fill(t, `[name="/title"]`, "Plain soup")
	f.add(t, "/tags", "/tags/0")
	f.value(t, "/title", "Plain soup")
	f.fill(t, `[name="/tags/0"]`, "cold")
	f.press(t, "Edit as JSON")
	f.shows(t, "Edit as form")
	f.names(t, `"cold"`)
	f.goodWithoutScript(t, "console-form-as-json")
	f.press(t, "Edit as form")
	f.shows(t, "Edit as JSON")
	f.value(t, "/tags/0", "cold")
	f.logOut(t)
	f.press(t, "Create")
	f.shows(t, "Nothing has been saved")
	f.goodWithoutScript(t, "console-kept")
	f.logIn(t)
	f.press(t, "Save again")
	f.shows(t, "The object has been created.")
	f.names(t, `"Plain soup"`)
}

func (f *fixture) testDroppedFiles(t *testing.T) {
	f.request(t, "POST", "/dishes", `{"uuid":"pie","title":"Pie"}`, nil)
	f.open(t, "/console/objects/Dishes/object/pie")
	evaluate[bool](t, f, `(() => {
		const dataTransfer = new DataTransfer();
		for (const name of ["<one>.txt", "two.txt"])
			dataTransfer.items.add(new File([name], name, {type: "text/plain"}));
		document.querySelector("form[data-drop]").dispatchEvent(
			new DragEvent("drop", {dataTransfer, bubbles: true, cancelable: true}));
		return true;
	})()`)
	f.shows(t, "two.txt")
	f.shows(t, "<one>.txt")
	f.shows(t, "The file has been added.")
	f.good(t, "console-dropped")
}
