package browser

import (
	"fmt"
	"strings"
	"testing"
)

// testReferences chooses what a new object names: one object, and then several.
func (f *fixture) testReferences(t *testing.T) {
	f.open(t, "/console/objects/Loans/new")
	f.edit(t, `{"days": 14.50}`)
	f.shows(t, "is required: it must name an object of Books")
	f.fill(t, `[name="q.book"]`, "Emm")
	f.shows(t, "emma")
	f.good(t, "console-pick")
	f.press(t, "Emma")
	f.chosen(t, "book")
	f.shows(t, "Valid.")
	f.names(t, `"book": "emma"`)
	f.names(t, `"days": 14.50`)

	f.click(t, `[name="several.authors"]`)
	for _, name := range []string{"Ada Lovelace", "Jane Austen"} {
		f.fill(t, `[name="q.authors"]`, name[:3])
		f.press(t, name)
		f.chosen(t, "authors")
	}
	f.names(t, `"lovelace",`)
	f.names(t, `"austen"`)
	f.click(t, `[name="remove.authors"][value="lovelace"]`)
	f.until(t, func() error {
		text, err := attempt[string](f, `document.querySelector("#text").value`)
		if err == nil && strings.Contains(text, "lovelace") {
			err = fmt.Errorf("it is still named by %s", text)
		}
		return err
	})
	// Enter searches, and saves nothing.
	f.fill(t, `[name="q.authors"]`, "none of them")
	f.keysIn(t, `[name="q.authors"]`, "\r")
	f.shows(t, "No object was found.")
	f.press(t, "Create")
	f.shows(t, "The object has been created.")

	f.open(t, "/console/objects/Books/object/emma/delete")
	f.shows(t, "can't be deleted while other objects name it")
	f.shows(t, "Loans by book: 1")
	f.good(t, "console-delete-restricted")
}

// chosen waits until the search of a reference is empty again and has the focus, which it gets after the text has
// changed.
func (f *fixture) chosen(t *testing.T, field string) {
	t.Helper()
	f.until(t, func() error {
		done, err := attempt[bool](f, fmt.Sprintf(
			`document.activeElement.value === "" && document.activeElement.name === "q.%s"`, field))
		if err == nil && !done {
			err = fmt.Errorf("%s is not chosen yet", field)
		}
		return err
	})
}

// names waits until the editor has a text.
func (f *fixture) names(t *testing.T, want string) {
	t.Helper()
	f.until(t, func() error {
		text, err := attempt[string](f, `document.querySelector("#text").value`)
		if err == nil && !strings.Contains(text, want) {
			err = fmt.Errorf("the editor has %s, want %s", text, want)
		}
		return err
	})
}
