package browser

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"belfry/test/process"
)

// testUsers finds a user, and does what admins do with them.
func (f *fixture) testUsers(t *testing.T) {
	f.open(t, "/console/users")
	f.fill(t, "#q", "nobody@example.com")
	f.press(t, "Find")
	f.shows(t, "No user has this")
	f.good(t, "console-users-none")
	f.fill(t, "#q", "OB@exam") // the list follows while somebody types
	f.shows(t, "bob@example.com")
	f.good(t, "console-users-found")
	f.fill(t, "#q", "BOB@example.com")
	f.press(t, "Find")
	f.shows(t, "Make an API key")
	f.good(t, "console-user")
	f.press(t, "Make an API key")
	f.fill(t, "#key-name", "backup")
	f.press(t, "Make the key")
	f.shows(t, "it is not shown again")
	f.good(t, "console-user-key")
	f.open(t, "/console/users/keys")
	f.shows(t, "backup")
	f.good(t, "console-users-keys-one")
	f.open(t, "/console/users?q=bob@example.com")
	f.shows(t, "Make an API key")
	for _, step := range []struct{ open, press, shows string }{
		{"Make an admin…", "Make the user an admin", "The user is an admin."},
		{"No longer an admin…", "Take away the rights of an admin", "The user is no longer an admin."},
		{"", "Revoke", "The API key is revoked."},
		{"End all sessions…", "End all sessions and API keys", "All sessions and API keys of the user have ended."},
		{"Disable…", "Disable the user", "The user is disabled"},
		{"", "Enable the user", "The user is enabled"},
	} {
		if step.open != "" {
			f.press(t, step.open)
		}
		f.press(t, step.press)
		f.shows(t, step.shows)
	}
	if text := f.text(t); !strings.Contains(text, "No session.") || !strings.Contains(text, "No API key.") {
		t.Errorf("sessions or keys are left:\n%s", text)
	}
	f.open(t, "/console/users/new")
	f.fill(t, "#name", "Carla")
	f.fill(t, "#login", "carla@example.com")
	f.fill(t, "#password", "a good password")
	f.press(t, "Create")
	f.shows(t, "carla@example.com_email")
	f.open(t, "/console/users/new")
	f.fill(t, "#login", "gwen@example.com")
	f.press(t, "Create")
	f.shows(t, "Send the invitation again")
	f.good(t, "console-user-invited")
}

// testSystem waits for the charts, which renew themselves unless somebody reads them.
func (f *fixture) testSystem(t *testing.T) {
	f.open(t, "/console/system")
	f.shows(t, "all parts work")
	f.shows(t, "postValidation: true")
	f.until(t, func() error {
		drawn, err := attempt[bool](f, `document.querySelectorAll("#charts svg.plot polyline").length > 0`)
		if err == nil && !drawn {
			err = errors.New("no line is drawn without a reload")
		}
		return err
	})
	f.good(t, "console-system")
	f.click(t, "#charts figure:first-of-type summary")
	f.shows(t, "Median")
}

// testEndOfRights ends the session, and takes away the rights of the admin, while pages are open. Nothing that they
// showed is left, also not for who goes back.
func (f *fixture) testEndOfRights(t *testing.T) {
	live := func() {
		t.Helper()
		f.open(t, "/console/live")
		f.press(t, "From the oldest event")
		f.shows(t, "emma")
	}
	logIn := func(at string) {
		t.Helper()
		f.fill(t, "#login", address)
		f.fill(t, "#password", password)
		f.press(t, "Log in")
		f.at(t, at)
	}
	user := func(args ...string) {
		t.Helper()
		args = append(append([]string{"user"}, args...), "--config", filepath.Join(f.folder, "belfry.yaml"))
		if out, errOut, code, err := process.Run(process.Commands(t), args...); err != nil || code != 0 {
			t.Fatalf("belfry %v: %d %v %s%s", args, code, err, out, errOut)
		}
	}
	f.open(t, "/console/objects/Books")
	f.shows(t, "Persuasion")
	f.press(t, "Log out")
	f.at(t, "/console/login")
	f.run(t, chromedp.NavigateBack())
	f.shows(t, "E-mail address")
	if text := f.text(t); strings.Contains(text, "Persuasion") {
		t.Errorf("the way back shows objects: %s", text)
	}
	logIn("/console/objects/Books")

	// Another tab logs out.
	live()
	evaluate[bool](t, f, `fetch("/auth/logout", {method: "POST"}).then(() => true)`, chromedp.EvalAwaitPromise)
	f.at(t, "/console/login?next=%2Fconsole%2Flive")
	logIn("/console/live")

	live()
	user("admin", address, "--revoke")
	f.shows(t, "not an admin")
	user("admin", address)
	live()
	user("disable", address)
	f.at(t, "/console/login?next=%2Fconsole%2Flive")
	user("enable", address)
	logIn("/console/live")
}
