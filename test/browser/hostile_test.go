package browser

import (
	"encoding/json"
	"fmt"
	"mime"
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// markup is a text that would run a script wherever it is taken for markup: in a text, in an attribute, and in a
// script. It has no quotes of both kinds, so that a rule can have it.
const markup = `"><img src=x onerror="ran=1"><script>ran=1</script></textarea><svg onload=ran=1>`

const hostile = `
listen: 127.0.0.1:0
bus: {listen: ""}
development: true
stores:
  Cooks: {expose: {list: true}, title: name, indexes: [name], policy: {default: allow}}
  Things:
    expose: {list: true}
    schema: thing.json
    title: name
    indexes: [name]
    references: {cook: Cooks}
    policy: {default: allow}
  Users: {expose: {}}
binaries: {Files: {map: {Things: [files]}}}
authentication: {providers: {email: {postValidation: true, skipEmailValidation: true}}}
`

// testMarkup opens each view that shows names and texts of others, with markup in them: none of it runs, and all of it
// is shown as it is.
func (f *fixture) testMarkup(t *testing.T) {
	m := &fixture{top: t, folder: t.TempDir(), worksOnly: true}
	quoted, err := json.Marshal(markup)
	if err != nil {
		t.Fatal(err)
	}
	text := string(quoted)
	m.write(t, "belfry.yaml", []byte(hostile))
	m.write(t, "thing.json", fmt.Appendf(nil, `{"type": "object", "title": %[1]s, "properties": {
		"name": {"type": "string", "title": %[1]s, "description": %[1]s, "maxLength": 200},
		"kind": {"enum": [%[1]s, "other"], "default": %[1]s}, "cook": {"type": "string"},
		%[1]s: {"type": "string", "title": %[1]s, "description": %[1]s, "pattern": %[1]s}}}`, text))
	m.serve(t)
	m.openTab(t, f.tab)
	go m.leaves()
	m.makeFirstAdmin(t)
	m.request(t, "POST", "/cooks", `{"uuid": "cook", "name": `+text+`}`, nil)
	for _, uuid := range []string{"one", "two"} {
		m.request(t, "POST", "/things", fmt.Sprintf(`{"uuid": %q, "name": %[2]s, "cook": "cook", "kind": %[2]s,
			%[2]s: %[2]s, "nested": {%[2]s: [%[2]s]}}`, uuid, text), nil)
	}
	m.request(t, "PUT", "/binary/upload/Things/one/files/add", "a file", nil, "Content-Type", "text/plain",
		"Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": markup}))

	escaped := url.QueryEscape(markup)
	const things, model = "/console/objects/Things", "/console/model/Things"
	for _, path := range []string{
		things, things + "?cols=name&cols=kind&cols=nested&cols=" + escaped, things + "?filter=" + escaped,
		things + "?sort=" + escaped, things + "?row=1&op=eq&field=" + escaped + "&value=" + escaped,
		things + "/object/one", things + "/object/one/history", things + "/object/one/delete",
		things + "/new", things + "/new?from=one", "/console/objects/Cooks", "/console/objects/Cooks/object/cook",
		"/console/objects/Cooks/object/cook/delete",
		model, model + "?uuid=" + escaped,
		"/console/configuration/stores/Things/field?name=" + escaped,
		"/console/configuration/stores/Things/remove-field?name=" + escaped,
	} {
		m.open(t, path)
		m.inert(t, path)
	}
	m.tryMarkup(t, text)
}

// tryMarkup types markup where the console shows it again.
func (f *fixture) tryMarkup(t *testing.T, text string) {
	t.Helper()
	f.open(t, "/console/objects/Things/new")
	f.fill(t, `[name="q.cook"]`, markup[:12])
	f.run(t, chromedp.WaitVisible(chromedp.CSS(`[name="choose.cook"]`)))
	f.inert(t, "hits of a search")
	f.click(t, `[name="choose.cook"]`)
	f.names(t, `"cook": "cook"`)
	f.inert(t, "a chosen object")

	f.open(t, "/console/objects/Things")
	f.click(t, "#saved summary")
	f.fill(t, "#saved-name", markup[:60])
	f.click(t, "#saved button")
	f.inert(t, "a saved filter")
	for _, box := range []string{"one", "two"} {
		f.click(t, fmt.Sprintf("[name=uuid][value=%q]", box))
	}
	f.fill(t, "#bulk-field", markup)
	f.fill(t, "#bulk-value", text)
	f.press(t, "Continue…")
	f.shows(t, "The new value")
	f.inert(t, "a bulk change")
	f.press(t, "Change them")
	f.shows(t, "Last run")
	f.inert(t, "the result of a bulk change")

	f.open(t, "/console/model/Things")
	f.fill(t, "#test-user", markup)
	f.fill(t, "#test-uuid", "one")
	f.press(t, "Test")
	f.shows(t, "there is no such user")
	f.inert(t, "a question about nobody")
	f.fill(t, "#test-user", " ")
	f.press(t, "Input, and a rule to try")
	f.fill(t, "#test-rule", "object.name == "+text)
	f.press(t, "Test")
	f.shows(t, "Tried rule")
	f.inert(t, "the answer of the rule tester")
	f.fill(t, "#test-rule", markup)
	f.press(t, "Test")
	f.shows(t, "In the rule")
	f.inert(t, "a wrong rule")

	for _, form := range []struct{ path, name string }{
		{"stores/Things/field?name=" + url.QueryEscape(markup), "/description"},
		{"stores/Things/edit/rules", "/policy/get"},
		{"new-store", "/name"},
	} {
		f.open(t, "/console/configuration/"+form.path)
		f.fill(t, fmt.Sprintf(`main [name=%q]`, form.name), markup+" again")
		f.press(t, "Review the change")
		f.run(t, chromedp.WaitVisible(chromedp.Search(`//h2[.="What happens then"] | //*[@role="alert"]//p`)))
		f.inert(t, "the review of "+form.path)
		if strings.Contains(f.text(t), "Apply the change") {
			f.press(t, "Apply the change")
			f.shows(t, "The configuration has been changed")
			f.inert(t, "a change")
		}
	}
}

// inert fails the test if markup of the page is more than text.
func (f *fixture) inert(t *testing.T, where string) {
	t.Helper()
	type found struct {
		Ran, Shown bool
		Elements   int
	}
	is := evaluate[found](t, f, `({
		ran: typeof ran !== "undefined",
		elements: document.querySelectorAll("main img[src=x], main script, main svg[onload], [onerror]").length,
		shown: [document.body.textContent, ...[...document.querySelectorAll("input, textarea, option")]
			.map(input => input.value)].some(text => text.includes('<img src=x onerror')),
	})`)
	if is.Ran || is.Elements > 0 {
		t.Errorf("%s: markup is more than text: %+v", where, is)
	}
	if !is.Shown {
		t.Errorf("%s does not show the text:\n%s", where, f.text(t))
	}
	f.checkComplaints(t)
}
