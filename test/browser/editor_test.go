package browser

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

const menu = `
development: true
listen: 127.0.0.1:0
bus: {listen: ""}
stores:
  Cooks: {expose: {}}
  Dishes:
    expose: {}
    owner: user
    schema: dish.json
    policy: {create: "user != null", get: "isOwner", list: isOwner, default: deny}
    references: {cook: Cooks}
  Users: {expose: {}}
authentication: {providers: {email: {postValidation: true, skipEmailValidation: true}}}
`

// TestEditors edits JSON and rules in the editor of the console, by the keyboard.
func TestEditors(t *testing.T) {
	f := &fixture{top: t, folder: t.TempDir(), axe: axeScript(t)}
	schema, err := os.ReadFile(filepath.Join("testdata", "dish.json"))
	if err != nil {
		t.Fatal(err)
	}
	f.write(t, "dish.json", schema)
	f.write(t, "belfry.yaml", []byte(menu))
	f.serve(t)
	f.tab = openBrowser(t)
	go f.listen(chromedp.Console(f.tab))
	go f.leaves()
	f.worksOnly = true // other tests check the pages on the way
	f.makeFirstAdmin(t)
	f.worksOnly = false
	for _, part := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"JSON", f.testEditorOfJSON},
		{"rules", f.testEditorOfRules},
		{"a rule that is tried", f.testEditorOfTriedRules},
		{"without a script", f.testEditorsWithoutScript},
		{"a file to copy", f.testEditorOfFiles},
	} {
		t.Run(part.name, part.run)
		f.checkComplaints(t)
	}
}

// inEditor is an expression in the editor of a textarea: its element, view, and the root of what it shows.
const inEditor = `(() => { const editor = document.querySelector(%q)?.closest("code-editor");
	const root = editor?.shadowRoot, view = editor?.view; if (!view) return null; return %s })()`

// editor evaluates an expression in the editor of a textarea, once it is there.
func editor[T any](t *testing.T, f *fixture, textarea, expression string) (value T) {
	t.Helper()
	f.until(t, func() error {
		found, err := attempt[json.RawMessage](f, fmt.Sprintf(inEditor, textarea, expression))
		if err == nil && (len(found) == 0 || string(found) == "null") {
			err = errors.New("there is no editor")
		}
		if err != nil {
			return fmt.Errorf("%s: %w", textarea, err)
		}
		return json.Unmarshal(found, &value)
	})
	return value
}

// enter types into the editor of a textarea, in place of what it has.
func (f *fixture) enter(t *testing.T, textarea, keys string) {
	t.Helper()
	editor[bool](t, f, textarea,
		`(view.focus(), view.dispatch({selection: {anchor: 0, head: view.state.doc.length}}), true)`)
	f.run(t, chromedp.KeyEvent(kb.Delete))
	for i, line := range strings.Split(keys, "\n") {
		if i > 0 {
			f.run(t, pressEnter)
		}
		f.run(t, chromedp.KeyEvent(line))
	}
}

// pressEnter presses Enter for an editor, which takes it before it becomes a character.
var pressEnter = chromedp.KeyEvent(kb.Enter, func(p *input.DispatchKeyEventParams) {
	if p.Type == kb.KeyChar {
		p.Type = kb.KeyUp
	}
})

// underlined waits until a part of a text is underlined.
func (f *fixture) underlined(t *testing.T, textarea, want string) {
	t.Helper()
	f.until(t, func() error {
		found, err := attempt[string](f, fmt.Sprintf(inEditor, textarea,
			`[...root.querySelectorAll(".cm-lintRange-error")].map(one => one.textContent).join("|")`))
		if err == nil && found != want {
			err = fmt.Errorf("%q is underlined, not %q:\n%s", found, want, f.text(t))
		}
		return err
	})
}

// focus is the name of the element that has the focus, or its text.
func (f *fixture) focus(t *testing.T) string {
	t.Helper()
	return f.get(t, `(e => e.name || e.querySelector("textarea")?.name || e.textContent.trim())(document.activeElement)`)
}

// styles checks that the styles of an editor are those that the policy of the page admits.
func (f *fixture) styles(t *testing.T, textarea string) {
	t.Helper()
	if n := editor[int](t, f, textarea, `root.adoptedStyleSheets.length`); n == 0 {
		t.Error("the editor has no constructed style sheet")
	}
	if n := editor[int](t, f, textarea,
		`document.querySelectorAll("style").length + root.querySelectorAll("style").length`); n > 0 {
		t.Errorf("%d elements have styles", n)
	}
}

func (f *fixture) testEditorOfJSON(t *testing.T) {
	f.open(t, newDish)
	f.styles(t, "#text")
	f.run(t, chromedp.Click(chromedp.CSS(`label[for="text"]`)))
	if focus := f.focus(t); focus != "text" {
		t.Errorf("the label leads to %s", focus)
	}
	f.enter(t, "#text", "{\n\"title\": \"A soup whose name is too long\",\n\"minutes\": 12}")
	f.names(t, "{\n  \"title\": \"A soup whose name is too long\",\n  \"minutes\": 12}")
	f.shows(t, "Not valid.")
	f.underlined(t, "#text", `"title": "A soup whose name is too long",`)
	if editor[string](t, f, "#text", `view.contentDOM.getAttribute("aria-invalid")`) != "true" {
		t.Error("the editor is not marked")
	}
	f.good(t, "")

	// The fields follow, and the editor follows them.
	f.value(t, "/minutes", "12")
	f.fill(t, `[name="/title"]`, "Soup")
	f.until(t, func() error {
		text, err := attempt[string](f, fmt.Sprintf(inEditor, "#text", `view.state.doc.toString()`))
		if err == nil && !strings.Contains(text, `"title": "Soup"`) {
			err = fmt.Errorf("the editor has %q", text)
		}
		return err
	})
	f.shows(t, "Valid.")
	f.underlined(t, "#text", "")

	// Undo, search, and the way out of the editor.
	f.enter(t, "#text", `{"title": "Stew"}`)
	f.run(t, chromedp.KeyEvent("x"), chromedp.KeyEvent("z", chromedp.KeyModifiers(kb.ModifierCtrl)))
	f.names(t, `"title": `)
	f.enter(t, "#text", `{"title": "Stew"}`)
	f.run(t, chromedp.KeyEvent("f", chromedp.KeyModifiers(kb.ModifierCtrl)), chromedp.KeyEvent("Ste"))
	if n := editor[int](t, f, "#text", `root.querySelectorAll(".cm-searchMatch").length`); n != 1 {
		t.Errorf("%d matches are marked", n)
	}
	f.good(t, "")
	f.run(t, chromedp.KeyEvent(kb.Escape), chromedp.KeyEvent(kb.Tab))
	if focus := f.focus(t); focus != "Schemas" {
		t.Errorf("Tab leads to %s", focus)
	}
	f.run(t, chromedp.KeyEvent(kb.Tab, chromedp.KeyModifiers(kb.ModifierShift)))
	if focus := f.focus(t); focus != "text" {
		t.Errorf("Shift and Tab lead to %s", focus)
	}
	f.press(t, "Create")
	f.shows(t, "The object has been created.")
	f.names(t, `"title": "Stew"`)
}

const getRule = `[name="/policy/get"]`

func (f *fixture) testEditorOfRules(t *testing.T) {
	f.open(t, "/console/configuration/stores/Dishes/edit/rules")
	f.styles(t, getRule)
	f.enter(t, getRule, "object.")
	f.until(t, func() error {
		offered, err := attempt[string](f, fmt.Sprintf(inEditor, getRule,
			`[...root.querySelectorAll(".cm-completionLabel")].map(one => one.textContent).join(" ")`))
		if err == nil && !strings.Contains(offered, "minutes") {
			err = fmt.Errorf("the editor offers %q", offered)
		}
		return err
	})
	f.good(t, "")
	f.run(t, chromedp.KeyEvent("minu"))
	f.until(t, func() error {
		chosen, err := attempt[string](f, fmt.Sprintf(inEditor, getRule,
			`root.querySelector(".cm-tooltip-autocomplete [aria-selected]")?.textContent ?? ""`))
		if err == nil && chosen != "minutes" {
			err = fmt.Errorf("%q is chosen", chosen)
		}
		return err
	})
	// For a moment after it has opened, a list takes no Enter: it may be meant for the text.
	f.until(t, func() error {
		f.run(t, pressEnter)
		text, err := attempt[string](f, fmt.Sprintf(`document.querySelector(%q).value`, getRule))
		if err == nil && text != "object.minutes" {
			err = fmt.Errorf("the rule is %q", text)
		}
		return err
	})

	f.run(t, chromedp.KeyEvent(" > usr.age"), chromedp.KeyEvent(kb.Escape), chromedp.KeyEvent(kb.Tab))
	if focus := f.focus(t); focus == "/policy/get" {
		t.Error("Tab does not leave the editor")
	}
	f.shows(t, "undeclared reference")
	f.underlined(t, getRule, "usr")
	f.good(t, "")
	f.enter(t, getRule, "object.minutes > 3")
	f.run(t, chromedp.KeyEvent(kb.Escape))
	f.press(t, "Review the change")
	f.shows(t, "The change")
	f.press(t, "Apply the change")
	f.shows(t, "The configuration has been changed")
}

func (f *fixture) testEditorOfTriedRules(t *testing.T) {
	f.open(t, "/console/model/Dishes")
	f.press(t, "Input, and a rule to try")
	f.styles(t, "#test-rule")
	f.fill(t, "#test-uuid", "none")
	f.enter(t, "#test-rule", "isOwner &&\n  linked.cok.name == 'Ada'")
	f.run(t, chromedp.KeyEvent(kb.Escape))
	f.press(t, "Test")
	f.shows(t, "In the rule at 2:")
	f.underlined(t, "#test-rule", "linked")
	f.good(t, "")
}

func (f *fixture) testEditorsWithoutScript(t *testing.T) {
	f.forbidScripts(t, true)
	defer f.forbidScripts(t, false)
	f.open(t, "/console/configuration/stores/Dishes/edit/rules")
	f.value(t, "/policy/get", "object.minutes > 3")
	f.fill(t, getRule, "isOwner || object.minutes > 4")
	f.press(t, "Review the change")
	f.shows(t, "isOwner || object.minutes > 4")
	f.press(t, "Apply the change")
	f.shows(t, "The configuration has been changed")
}

// testEditorOfFiles has belfry no longer write its configuration, so the change is to copy.
func (f *fixture) testEditorOfFiles(t *testing.T) {
	path := filepath.Join(f.folder, "belfry.yaml")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	f.write(t, "belfry.yaml", append(text, "console: {edit: false}\n"...))
	f.belfry(t, "reload", "--config", path)
	f.open(t, "/console/configuration/stores/Dishes/edit/rules")
	f.enter(t, getRule, "isOwner")
	f.run(t, chromedp.KeyEvent(kb.Escape))
	f.press(t, "Review the change")
	f.press(t, "The whole file")
	const file = "details textarea"
	if shown := editor[string](t, f, file, `view.state.doc.toString()`); !strings.Contains(shown,
		"console: {edit: false}") {
		t.Errorf("the editor has %s", shown)
	}
	if editor[bool](t, f, file, `view.state.readOnly && view.contentDOM.ariaReadOnly === "true"`) != true {
		t.Error("the file can be edited")
	}
	f.good(t, "")
}
