package browser

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// testTwoAdmins has two admins change the model at once: the second one reads that the first has, and loses nothing
// of what was typed.
func (f *fixture) testTwoAdmins(t *testing.T) {
	other := &fixture{URL: f.URL, server: f.server, top: f.top, folder: f.folder, axe: f.axe}
	other.openTab(t, f.tab)
	other.request(t, "POST", "/auth/email",
		`{"register":true,"login":"dora@example.com","password":"`+password+`"}`, nil)
	other.belfry(t, "user", "admin", "dora@example.com", "--config", filepath.Join(f.folder, "belfry.yaml"))
	other.open(t, "/console/login")
	other.fill(t, "#login", "dora@example.com")
	other.fill(t, "#password", password)
	other.press(t, "Log in")
	other.at(t, "/console/start")

	f.open(t, dishesForms+"/edit/rules")
	other.open(t, dishesForms+"/edit/computed")
	other.add(t, "/computed", "/computed/~r1")
	other.fill(t, `[name="name:/computed/~r1"]`, "slow")
	other.fill(t, `[name="/computed/~r1"]`, "has(object.minutes) && object.minutes > 60")

	f.fill(t, `[name="/policy/delete"]`, "user != null")
	f.press(t, "Review the change")
	f.press(t, "Apply the change")
	f.shows(t, "The configuration has been changed: stores.Dishes.policy")

	other.press(t, "Review the change")
	other.shows(t, "The configuration has been changed since you opened this page.")
	other.good(t, "console-model-conflict")
	other.press(t, "Review the change")
	other.shows(t, "What happens then")

	// Both are at the review, and the first is faster again.
	f.open(t, dishesForms+"/edit/rules")
	f.fill(t, `[name="/policy/delete"]`, "isOwner")
	f.press(t, "Review the change")
	f.press(t, "Apply the change")
	f.shows(t, "The configuration has been changed: stores.Dishes.policy")
	other.press(t, "Apply the change")
	other.shows(t, "The configuration has been changed since you opened this page.")
	other.press(t, "Review the change")
	other.press(t, "Apply the change")
	other.shows(t, "The configuration has been changed: stores.Dishes.computed")
	text := f.file(t, "belfry.yaml")
	for _, line := range []string{"slow: has(object.minutes) && object.minutes > 60", "delete: isOwner"} {
		if !strings.Contains(text, line) {
			t.Errorf("the file has no %q:\n%s", line, text)
		}
	}
	other.checkComplaints(t)
}

// testModelEndedSession loses nothing when a session ends while the model is being changed: at the form, at its review,
// and when the page is left and opened again.
func (f *fixture) testModelEndedSession(t *testing.T) {
	f.open(t, configuration+"/new-store")
	if f.asks(t) {
		t.Error("the browser asks although nothing is edited")
	}
	f.fill(t, `[name="/name"]`, "Guests")
	f.set(t, "/access", `"users"`)
	f.add(t, "/fields", "/fields/1/name")
	f.set(t, "/fields/1/type", `"integer"`)
	f.fill(t, `[name="/fields/1/name"]`, "title")
	f.leave(t)
	f.wrong(t, "/fields/1/name", "There is a field of this name.")
	f.fill(t, `[name="/fields/1/name"]`, "seats")
	f.leave(t)
	f.wrong(t, "/fields/1/name", "")
	if !f.asks(t) {
		t.Error("the browser does not ask")
	}
	f.open(t, configuration+"/new-store")
	f.shows(t, "There are unsaved edits from")
	f.good(t, "console-model-draft")
	f.press(t, "Restore unsaved edits")
	f.value(t, "/fields/1/name", "seats")
	f.value(t, "/name", "Guests")
	if !f.asks(t) {
		t.Error("the browser does not ask after edits were restored")
	}
	f.logOut(t)
	f.press(t, "Review the change")
	f.shows(t, "You have been logged out, or have to prove again")
	f.good(t, "console-model-logged-out")
	f.logIn(t)
	f.click(t, "#ended button")
	f.value(t, "/fields/1/name", "seats")
	f.press(t, "Review the change")
	f.shows(t, "What happens then")
	f.logOut(t)
	f.press(t, "Apply the change")
	f.shows(t, "You have been logged out, or have to prove again")
	f.logIn(t)
	f.click(t, "#ended button")
	f.press(t, "Apply the change")
	f.shows(t, "The configuration has been changed: stores.Guests")
	f.open(t, "/console/model/Guests")
	f.shows(t, "seats")
}

// testModelWithoutScript changes the model by plain forms, also when the session ends before one is sent.
func (f *fixture) testModelWithoutScript(t *testing.T) {
	f.forbidScripts(t, true)
	defer f.forbidScripts(t, false)
	f.open(t, dishesForms+"/edit/indexes")
	f.add(t, "/indexes", "/indexes/2")
	f.fill(t, `[name="/indexes/2"]`, "day")
	f.goodWithoutScript(t, "console-model-without-script")
	f.logOut(t)
	f.press(t, "Review the change")
	f.shows(t, "Nothing has been saved")
	f.goodWithoutScript(t, "console-model-kept")
	f.logIn(t)
	f.press(t, "Save again")
	f.shows(t, "What happens then")
	f.press(t, "Back to the form")
	f.value(t, "/indexes/2", "day")
	f.press(t, "Review the change")
	f.press(t, "Apply the change")
	f.shows(t, "The configuration has been changed: stores.Dishes.indexes.")
	f.open(t, configuration+"/changes")
	f.run(t, chromedp.Click(chromedp.CSS("tbody tr:first-child a.button"), chromedp.NodeVisible))
	f.press(t, "Undo the change")
	f.shows(t, "has been undone.")
}
