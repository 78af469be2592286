package browser

import (
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"

	"belfry/test/kit/programs"
	"belfry/test/process"
)

// testWebExample uses examples/web as a user does, on a belfry of its own that serves it.
func (f *fixture) testWebExample(t *testing.T) {
	folder, err := programs.WebExample()
	if err != nil {
		t.Fatal(err)
	}
	f.typesAreCurrent(t, folder)
	w := &fixture{axe: f.axe}
	w.server = process.ServePlain(t, filepath.Join(folder, "belfry.yaml"), "--data", t.TempDir(), "--listen",
		"127.0.0.1:0")
	w.URL = w.server.URL
	w.openTab(t, f.tab)

	w.open(t, "/")
	w.shows(t, "Log in")
	w.good(t, "web-login")
	w.fill(t, "#login", address)
	w.fill(t, "#password", "short but")
	w.press(t, "Log in")
	w.shows(t, "there is no account with this login")
	w.fill(t, "#password", password)
	w.press(t, "Register")
	w.shows(t, address)

	w.fill(t, "#title", "Buy milk")
	w.press(t, "Add")
	w.shows(t, "Buy milk")
	w.fill(t, "#title", "Call Grace")
	w.press(t, "Add")
	w.shows(t, "Call Grace")
	w.good(t, "web-notes")

	// Another program of the same user writes: the page follows without a reload.
	w.fromElsewhere(t, "POST", "/notes", `{"title":"From elsewhere"}`)
	w.shows(t, "From elsewhere")

	// Edit, with a picture.
	w.press(t, "Call Grace")
	picture := dotFile(t)
	w.run(t, chromedp.SetUploadFiles(chromedp.CSS("#picture"), []string{picture}))
	w.run(t, chromedp.WaitReady(chromedp.CSS("#pictures img")))
	w.until(t, func() error {
		_, err := attempt[bool](w, `document.querySelector('#pictures img').decode().then(() => true)`,
			chromedp.EvalAwaitPromise)
		return err
	})
	w.fill(t, "#edit-text", "on Sunday")
	w.good(t, "web-editor")
	w.press(t, "Save")
	w.editorIsClosed(t)
	w.shows(t, "Call Grace (1 picture)")

	// Another program changes the note that is edited: the save shows it, and nothing is overwritten unseen.
	w.press(t, "Buy milk")
	w.run(t, chromedp.WaitVisible(chromedp.CSS("#edit-title")))
	milk := evaluate[string](t, w,
		`fetch('/notes').then(r => r.json()).then(p => p.items.find(n => n.title === 'Buy milk').uuid)`,
		chromedp.EvalAwaitPromise)
	w.fromElsewhere(t, "PATCH", "/notes/"+milk, `{"title":"Buy oat milk"}`)
	w.fill(t, "#edit-text", "two bottles")
	w.press(t, "Save")
	w.shows(t, "This note was changed elsewhere")
	w.shows(t, "Buy oat milk")
	w.good(t, "web-conflict")
	w.press(t, "Take it")
	w.fill(t, "#edit-text", "two bottles")
	w.press(t, "Save")
	w.editorIsClosed(t)
	if got := w.fromElsewhere(t, "GET", "/notes/"+milk, ""); got.Title != "Buy oat milk" || got.Text != "two bottles" {
		t.Errorf("the note is %+v", got)
	}
	w.press(t, "Log out")
	w.shows(t, "Register")
	w.checkComplaints(t)
}

// editorIsClosed waits until the save has succeeded. What is behind the editor can't be clicked before.
func (f *fixture) editorIsClosed(t *testing.T) {
	t.Helper()
	f.until(t, func() error {
		open, err := attempt[bool](f, `document.querySelector("dialog").open`)
		if err == nil && open {
			err = errors.New("the editor is open")
		}
		return err
	})
}

type note struct{ Title, Text string }

// fromElsewhere sends a request of another program of the user.
func (f *fixture) fromElsewhere(t *testing.T, method, path, body string) (n note) {
	t.Helper()
	var session struct{ Token string }
	f.request(t, "POST", "/auth/email", fmt.Sprintf(`{"login":%q,"password":%q}`, address, password), &session,
		"Prefer", "return=representation")
	f.request(t, method, path, body, &n, "Authorization", "Bearer "+session.Token)
	return n
}

// typesAreCurrent checks that the types in the example are those of the API that its configuration makes.
func (f *fixture) typesAreCurrent(t *testing.T, folder string) {
	t.Helper()
	document, fresh := filepath.Join(t.TempDir(), "openapi.json"), filepath.Join(t.TempDir(), "schema.d.ts")
	text := f.belfry(t, "openapi", "--config", filepath.Join(folder, "belfry.yaml"))
	if err := os.WriteFile(document, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), filepath.Join(folder, "node_modules", ".bin", "openapi-typescript"),
		document, "-o", fresh)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	want, err := os.ReadFile(fresh)
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(folder, "src", "schema.d.ts"))
	if err != nil || string(got) != string(want) {
		t.Errorf("examples/web/src/schema.d.ts is not what openapi-typescript makes of the API: run npm run types "+
			"there (%v)", err)
	}
}

// dot is a PNG of one pixel.
const dot = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC"

// dotFile writes dot into a file.
func dotFile(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "dot.png")
	png, err := base64.StdEncoding.DecodeString(dot)
	if err == nil {
		err = os.WriteFile(file, png, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return file
}
