package browser

import (
	"fmt"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// focusNamed waits until the focus is at the element of a name, as programs that read the page say it.
func (f *fixture) focusNamed(t *testing.T, want string) {
	t.Helper()
	f.until(t, func() error {
		is, err := attempt[string](f,
			`(e => e.getAttribute("aria-label") ?? e.textContent.trim().slice(0, 100))(document.activeElement)`)
		if err == nil && is != want {
			err = fmt.Errorf("the focus is at %q", is)
		}
		return err
	})
}

// testModelFocus refuses forms, and removes rows by the keyboard: the focus is at what is wrong, and is never lost.
func (f *fixture) testModelFocus(t *testing.T) {
	f.open(t, configuration+"/new-store")
	f.press(t, "Review the change")
	f.focusOn(t, "/name")
	f.wrong(t, "/name", "A store needs a name.")
	f.fill(t, `[name="/name"]`, "my menus")
	f.leave(t)
	f.wrong(t, "/name", "expected a name of 1 to 63 letters")
	f.fill(t, `[name="/name"]`, "Weeks")
	f.leave(t)
	f.wrong(t, "/name", "")
	f.add(t, "/fields", "/fields/1/name")
	f.focusOn(t, "/fields/1/name")
	f.add(t, "/fields", "/fields/2/name")
	f.focusOn(t, "/fields/2/name")
	f.run(t, chromedp.Focus(chromedp.CSS(`[aria-label="Remove Field 2"]`)))
	f.keys(t, kb.Enter)
	f.run(t, chromedp.WaitNotPresent(chromedp.CSS(`[name="/fields/1/name"]`)))
	f.focusNamed(t, "Remove Field 2") // which was the third
	f.keys(t, kb.Enter)
	f.run(t, chromedp.WaitNotPresent(chromedp.CSS(`[name="/fields/2/name"]`)))
	f.focusNamed(t, "Add to Fields")

	f.open(t, dishesForms+"/field")
	f.fill(t, `[name="/name"]`, "zip")
	f.fill(t, `[name="/pattern"]`, "([")
	f.leave(t)
	f.wrong(t, "/pattern", "the pattern")
	f.press(t, "Review the change")
	f.focusOn(t, "/pattern")
}

// testGridLeaving leaves cells that are edited: what was typed is saved, and the focus is where somebody has gone.
func (f *fixture) testGridLeaving(t *testing.T) {
	f.open(t, shownColumns)
	edit := func(typed ...string) {
		t.Helper()
		f.click(t, cellOf("stew", "minutes"))
		f.keys(t, kb.Enter)
		f.editing(t, "stew", "minutes", true)
		f.keys(t, typed...)
	}
	edit("9", "x", kb.Enter)
	f.wrongAt(t, "stew", "minutes", "expected a number")
	f.keys(t, kb.Escape)
	edit("9", "1", kb.Tab)
	f.has(t, "stew", "minutes", "91")
	f.focused(t, "stew vegan")
	edit("9", "2")
	f.click(t, "#filter")
	f.has(t, "stew", "minutes", "92")
	if id := f.get(t, `document.activeElement.id`); id != "filter" {
		t.Errorf("the focus is at %q", id)
	}
	edit("9", "3")
	f.click(t, cellOf("stew", "title"))
	f.has(t, "stew", "minutes", "93")
	f.focused(t, "stew title")
	edit("9", "0", kb.Enter)
	f.has(t, "stew", "minutes", "90")
}
