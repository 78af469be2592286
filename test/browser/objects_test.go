package browser

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// testObjects edits, merges and deletes an object, and adds and removes a file.
func (f *fixture) testObjects(t *testing.T) {
	f.open(t, "/console/objects/Books/object/emma")
	evaluate[bool](t, f, `(document.querySelector("img.preview").scrollIntoView(), true)`)
	f.until(t, func() error {
		width, err := attempt[int64](f, `document.querySelector("img.preview").naturalWidth`)
		if err == nil && width != 40 {
			err = fmt.Errorf("the preview is %d wide", width)
		}
		return err
	})

	f.open(t, "/console/objects/Books/object/lady-susan")
	f.edit(t, `{"author":"austen","title":"Lady Susan","year":1794,"note":"published in 1871"}`)
	f.shows(t, "Valid.")
	f.press(t, "Save")
	f.shows(t, "The object has been saved.")
	f.shows(t, "published in 1871")
	const before, after = "{\n  \"author\": \"austen\",", "\n  \"title\": \"Lady Susan\",\n  \"year\": 1794\n}"
	f.press(t, "Undo")
	f.shows(t, "The edit has been undone.")
	f.value(t, "text", before+after)
	f.press(t, "Undo")
	f.value(t, "text", before+"\n  \"note\": \"published in 1871\","+after)

	// Another client changes the object while it is being edited.
	f.request(t, "PUT", "/books/lady-susan", `{"year":1871}`, nil)
	f.edit(t, `{"author":"austen","title":"Lady Susan, a novel","year":1794,"note":"published in 1871"}`)
	f.press(t, "Save")
	f.shows(t, "Nothing has been saved.")
	f.good(t, "console-conflict")
	f.edit(t, `{"author":"austen","title":"Lady Susan, a novel","year":1871,"note":"published in 1871"}`)
	f.press(t, "Save my version")
	f.shows(t, "The object has been saved.")
	var book struct {
		Title string
		Year  int
	}
	if f.request(t, "GET", "/books/lady-susan", "", &book); book.Title != "Lady Susan, a novel" || book.Year != 1871 {
		t.Errorf("%+v", book)
	}

	f.press(t, "Restore this version…")
	f.shows(t, "From now to this version")
	f.good(t, "console-restore")
	f.press(t, "Restore this version")
	f.shows(t, "The object has been saved.")
	f.shows(t, "Restore this version…")
	if f.request(t, "GET", "/books/lady-susan", "", &book); book.Title != "Lady Susan" || book.Year != 1871 {
		t.Errorf("restored: %+v", book)
	}

	file := filepath.Join(t.TempDir(), "cover <1>.txt")
	if err := os.WriteFile(file, []byte("a cover"), 0o600); err != nil {
		t.Fatal(err)
	}
	f.run(t, chromedp.SetUploadFiles(chromedp.CSS("#file-covers"), []string{file}))
	f.press(t, "Upload")
	f.shows(t, "The file has been added.")
	f.shows(t, "cover <1>.txt")
	content := evaluate[string](t, f,
		`fetch("/console/objects/Books/object/lady-susan/files/covers/0").then(r => r.text())`,
		chromedp.EvalAwaitPromise)
	if content != "a cover" {
		t.Errorf("the file is %q", content)
	}
	f.shows(t, "Binary.Uploaded")
	f.good(t, "console-object-file")

	f.press(t, "Delete…")
	f.shows(t, "1 file of the object will be removed.")
	f.press(t, "Delete")
	f.shows(t, "Lady Susan has been deleted.")
	f.open(t, "/console/objects/Books/object/lady-susan/history")
	f.shows(t, "Store.Deleted")
	f.good(t, "console-history")
	if strings.Contains(f.text(t), "is not valid") {
		t.Error(f.text(t))
	}
}

// testSchemas has a stricter schema served, finds the objects that do not match it, and mends one of them in the
// editor.
func (f *fixture) testSchemas(t *testing.T) {
	serve := func(text []byte) {
		t.Helper()
		f.write(t, "book.json", text)
		f.belfry(t, "reload", "--config", filepath.Join(f.folder, "belfry.yaml"))
	}
	before, err := os.ReadFile(filepath.Join("testdata", "book.json"))
	if err != nil {
		t.Fatal(err)
	}
	serve([]byte(strings.NewReplacer(`"minLength": 1`, `"maxLength": 20`, `"minimum": 0`,
		`"minimum": 1812`).Replace(string(before))))
	f.open(t, "/console/objects/Books")
	f.press(t, "Check by the schema")
	f.press(t, "Check now")
	f.shows(t, "2 objects do not match")
	f.good(t, "console-schemas")
	f.click(t, `a[href$="/sense-and-sensibility"]`)
	f.shows(t, "Not valid, as it is stored.")
	f.good(t, "console-object-invalid")
	f.click(t, "#check li:last-child a")
	if line := editor[string](t, f, "#text", `view.state.sliceDoc(view.state.selection.main.from,
		view.state.selection.main.to)`); !strings.Contains(line, `"year": 1811`) &&
		!strings.Contains(line, `"title": "Sense`) {
		t.Errorf("the editor selects %q", line)
	}
	f.edit(t, `{"author":"austen","title":"Sense & Sensibility","year":1813}`)
	f.shows(t, "Valid.")
	f.press(t, "Save")
	f.shows(t, "The object has been saved.")
	f.open(t, "/console/schemas")
	f.shows(t, "matches now")
	serve(before)
	f.open(t, "/console/schemas")
	f.shows(t, "another one: check again")
}
