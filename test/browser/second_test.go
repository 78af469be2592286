package browser

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/pquerna/otp/totp"
)

// testSecondFactor logs in to the console as an admin who has an authenticator app, in a tab with cookies of its own,
// and resets the second factors of a user.
func (f *fixture) testSecondFactor(t *testing.T) {
	other := &fixture{URL: f.URL, server: f.server, top: f.top, folder: f.folder, axe: f.axe, pictures: f.pictures}
	other.openTab(t, f.tab)
	admin, recovery := other.enroll(t, "dora@example.com")
	other.belfry(t, "user", "admin", "dora@example.com", "--config", filepath.Join(f.folder, "belfry.yaml"))
	other.enroll(t, "finn@example.com")

	other.open(t, "/console/users?q=finn@example.com")
	other.fill(t, "#login", "dora@example.com")
	other.fill(t, "#password", password)
	other.press(t, "Log in")
	other.at(t, "/console/second-factor?next=%2Fconsole%2Fusers%3Fq%3Dfinn%40example.com")
	other.submit(t, "#totp", "000000")
	other.shows(t, "the code is wrong")
	other.good(t, "console-second-factor")
	code, err := totp.GenerateCode(admin, time.Now().Add(30*time.Second)) // the one of now was used
	if err != nil {
		t.Fatal(err)
	}
	other.submit(t, "#totp", code)
	other.shows(t, "10 left")
	other.good(t, "console-user-second-factor")
	page := other.get(t, `location.pathname`)
	other.testAsUser(t, page)

	other.open(t, "/console/step-up?next="+page)
	other.good(t, "console-step-up")
	other.press(t, "Use a recovery code")
	other.submit(t, "#recovery", recovery)
	other.at(t, page)
	other.shows(t, "You have proven who you are.")
	other.press(t, "Reset second factors…")
	other.press(t, "Reset the second factors")
	other.shows(t, "No second factor.")
	other.checkComplaints(t)
}

// testAsUser sees as the user of a page.
func (f *fixture) testAsUser(t *testing.T, page string) {
	t.Helper()
	f.press(t, "See as this user")
	f.at(t, page+"/as")
	f.shows(t, "Nothing can be changed here.")
	f.good(t, "console-user-as")
	f.open(t, page+"/as/Books?sort=title")
	f.shows(t, "Persuasion")
	f.good(t, "console-user-as-list")
	f.fill(t, "#object", "emma")
	f.press(t, "Open")
	f.at(t, page+"/as/Books/emma")
	f.good(t, "console-user-as-object")
	f.open(t, page+"/as/Books/none")
	f.shows(t, "The API answers 404")
	f.good(t, "console-user-as-refused")
	f.press(t, "End")
	f.shows(t, "You no longer see as this user.")
	f.open(t, page+"/as")
	f.at(t, page)
}

// submit types into a field of a form, and sends the form.
func (f *fixture) submit(t *testing.T, selector, text string) {
	t.Helper()
	f.fill(t, selector, text)
	f.keysIn(t, selector, "\r")
}

// enroll registers a user with an authenticator app, and returns its secret and a recovery code.
func (f *fixture) enroll(t *testing.T, login string) (secret, recovery string) {
	t.Helper()
	var session struct{ Token string }
	f.request(t, "POST", "/auth/email", `{"register":true,"login":"`+login+`","password":"`+password+`"}`, &session,
		"Prefer", "return=representation")
	var app struct{ Secret string }
	f.request(t, "POST", "/auth/factors/totp", "", &app, "Authorization", "Bearer "+session.Token)
	code, err := totp.GenerateCode(app.Secret, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	var added struct{ RecoveryCodes []string }
	f.request(t, "PUT", "/auth/factors/totp", `{"code":"`+code+`"}`, &added, "Authorization", "Bearer "+session.Token)
	return app.Secret, added.RecoveryCodes[0]
}
