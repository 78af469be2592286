package browser

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

const gridPath = "/console/objects/Dishes"

// shownColumns is the list by minutes, with columns of several kinds.
const shownColumns = gridPath +
	"?cols=title&cols=minutes&cols=vegan&cols=price&cols=at&cols=cook&cols=extra&sort=minutes"

// gridViews are the pages of a list that only show something.
var gridViews = []page{
	{"console-grid", gridPath, "Soup"},
	{"console-grid-columns", shownColumns, "add an index"},
	{"console-grid-built", gridPath + "?field=minutes&op=%3E%3D&value=40&field=title&op=starts&value=S&row=1", "Stew"},
	{"console-grid-unbuilt", gridPath + "?field=minutes&op=%3D%3D&value=many", "This field has numbers"},
	{"console-grid-empty", gridPath + "?filter=minutes+%3D%3D+7", "No object matches the filter."},
	{"console-grid-count", gridPath + "?count=exact", "4 objects match."},
	{"console-grid-bulk-none", gridPath + "/bulk", "There was no run yet."},
	{"console-grid-duplicate", gridPath + "/new?from=soup", "Save and new"},
	{"console-grid-history", gridPath + "/object/soup/history", "Store.Saved"},
	{"console-grid-delete", "/console/objects/Cooks/object/ada/delete", "can't be deleted while other objects name it"},
}

// TestGrid uses the list of the objects of a store as a table: by the keyboard, by the mouse, and without a script.
func TestGrid(t *testing.T) {
	f := startStores(t, "grid.yaml", "dish.json")
	for _, o := range []struct{ path, body string }{
		{"/cooks", `{"uuid":"ada","name":"Ada"}`},
		{"/cooks", `{"uuid":"bob","name":"Bob <b>the builder</b> whose name is longer than a small screen"}`},
		{"/dishes", `{"uuid":"soup","title":"Soup","minutes":30,"vegan":true,"price":1.50,"at":"2024-05-01T10:30:00Z",
			"cook":"ada","extra":{"a":[1,2,3]}}`},
		{"/dishes", `{"uuid":"pie","title":"Pie","minutes":45,"vegan":false,"cook":"bob"}`},
		{"/dishes", `{"uuid":"stew","title":"Stew","minutes":90}`},
		{"/dishes", `{"uuid":"markup","title":"<i>x</i>","minutes":120,"note":"=1+1"}`},
	} {
		f.request(t, "POST", o.path, o.body, nil)
	}
	for _, part := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"views", f.testGridViews},
		{"keyboard", f.testGridKeyboard},
		{"editing", f.testGridEditing},
		{"leaving", f.testGridLeaving},
		{"columns", f.testGridColumns},
		{"filters", f.testGridFilters},
		{"several", f.testGridSeveral},
		{"without a script", f.testGridWithoutScript},
		{"left as it is", f.testGridUnchanged},
	} {
		t.Run(part.name, part.run)
		f.checkComplaints(t)
	}
}

func (f *fixture) testGridViews(t *testing.T) {
	f.visit(t, gridViews)
	f.open(t, shownColumns)
	f.unfold(t)
	f.shows(t, "This browser alone keeps them.")
	f.good(t, "console-grid-unfolded")
}

// unfold opens all that the page folds.
func (f *fixture) unfold(t *testing.T) {
	t.Helper()
	evaluate[bool](t, f, `(document.querySelectorAll("main details").forEach(e => e.open = true), true)`)
}

// cellOf is the selector of a value of a list.
func cellOf(uuid, field string) string {
	return fmt.Sprintf(`tr[data-uuid=%q] td[data-field=%q]`, uuid, field)
}

// keys presses keys, one after the other.
func (f *fixture) keys(t *testing.T, keys ...string) {
	t.Helper()
	for _, key := range keys {
		f.run(t, chromedp.KeyEvent(key))
	}
}

// focused waits until the focus is at a cell: the uuid of its row, and its field or what it has.
func (f *fixture) focused(t *testing.T, want string) {
	t.Helper()
	f.until(t, func() error {
		is, err := attempt[string](f, `(e => [e.closest("tr")?.dataset.uuid, e.dataset.field ?? e.textContent.trim(),
			e.parentElement.querySelector(".wrong:not(:empty)")?.textContent].filter(part => part !== undefined)
			.join(" "))(document.activeElement)`)
		if err == nil && is != want {
			err = fmt.Errorf("the focus is at %q, not at %q", is, want)
		}
		return err
	})
}

// editing waits until a value of a list is edited, or until it is not any more.
func (f *fixture) editing(t *testing.T, uuid, field string, want bool) {
	t.Helper()
	f.until(t, func() error {
		is, err := attempt[bool](f, fmt.Sprintf(
			`document.activeElement === document.querySelector(%q)?.querySelector("input, select")`,
			cellOf(uuid, field)))
		if err == nil && is != want {
			err = fmt.Errorf("%s of %s is edited: %t", field, uuid, is)
		}
		return err
	})
}

// has waits until a cell of a list shows a text.
func (f *fixture) has(t *testing.T, uuid, field, want string) {
	t.Helper()
	f.until(t, func() error {
		is, err := attempt[string](f, fmt.Sprintf(`document.querySelector(%q)?.innerText.trim() ?? "none"`,
			cellOf(uuid, field)))
		if err == nil && is != want {
			err = fmt.Errorf("%s of %s is %q, not %q", field, uuid, is, want)
		}
		return err
	})
}

// dish returns what is stored of a dish.
func (f *fixture) dish(t *testing.T, uuid string) (d struct {
	Title   string
	Minutes int
	Vegan   bool
	Price   float64
}) {
	t.Helper()
	f.request(t, "GET", "/dishes/"+uuid, "", &d)
	return d
}

// The arrows move among cells, Enter edits, Escape leaves without a change, and Space chooses the row.
func (f *fixture) testGridKeyboard(t *testing.T) {
	f.open(t, shownColumns)
	if stops := evaluate[int64](t, f,
		`document.querySelectorAll("#cells tbody :is(td, th)[tabindex='0']").length`); stops != 1 {
		t.Errorf("the Tab key stops at %d cells", stops)
	}
	f.click(t, cellOf("soup", "minutes"))
	f.focused(t, "soup minutes")
	f.keys(t, kb.ArrowDown)
	f.focused(t, "pie minutes")
	f.keys(t, kb.ArrowLeft, kb.ArrowUp)
	f.focused(t, "soup title")
	f.keys(t, kb.ArrowUp)
	f.focused(t, "soup title")
	f.keys(t, kb.End)
	f.focused(t, "soup Duplicate")
	f.keys(t, kb.ArrowRight, kb.Home)
	f.focused(t, "soup ")
	f.keys(t, kb.ArrowDown, " ")
	f.shows(t, "1 chosen.")
	f.keys(t, kb.ArrowDown, " ")
	f.shows(t, "2 chosen.")
	f.keys(t, " ")
	f.shows(t, "1 chosen.")
	f.focused(t, "stew ")

	f.click(t, cellOf("pie", "minutes"))
	f.keys(t, kb.Enter)
	f.editing(t, "pie", "minutes", true)
	f.keys(t, "5", "0", kb.Escape)
	f.focused(t, "pie minutes")
	f.has(t, "pie", "minutes", "45")
	f.keys(t, kb.ArrowRight)
	f.focused(t, "pie vegan")
	if minutes := f.dish(t, "pie").Minutes; minutes != 45 {
		t.Errorf("Escape has saved %d", minutes)
	}
	// A link is followed from its cell, and leads back.
	f.click(t, cellOf("soup", "extra"))
	f.keys(t, kb.ArrowLeft)
	f.focused(t, "soup cook")
}

// A value that is edited in place is saved, what is wrong with it is shown at it, and so is that somebody else has
// changed the object.
func (f *fixture) testGridEditing(t *testing.T) {
	f.open(t, shownColumns)
	f.click(t, cellOf("pie", "minutes"))
	f.keys(t, kb.Enter)
	f.editing(t, "pie", "minutes", true)
	f.good(t, "console-grid-edited")
	f.keys(t, "5", "5", kb.Enter)
	f.focused(t, "pie minutes")
	f.has(t, "pie", "minutes", "55")
	if minutes := f.dish(t, "pie").Minutes; minutes != 55 {
		t.Errorf("%d is saved", minutes)
	}
	// A choice, and a text; the row that was replaced is edited again at its new revision.
	f.run(t, chromedp.DoubleClick(chromedp.CSS(cellOf("pie", "vegan"))))
	f.editing(t, "pie", "vegan", true)
	f.keys(t, " ")
	f.focused(t, "pie vegan")
	if !f.dish(t, "pie").Vegan {
		t.Error("true is not saved")
	}
	f.run(t, chromedp.DoubleClick(chromedp.CSS(cellOf("pie", "title"))))
	f.editing(t, "pie", "title", true)
	f.keys(t, `"`, "<", "b", ">", kb.Enter)
	f.has(t, "pie", "title", `"<b>`)
	if title := f.dish(t, "pie").Title; title != `"<b>` {
		t.Errorf("%q is saved", title)
	}

	f.click(t, cellOf("pie", "minutes"))
	f.keys(t, kb.Enter)
	f.editing(t, "pie", "minutes", true)
	f.keys(t, "0", kb.Enter)
	f.wrongAt(t, "pie", "minutes", "at least 1")
	f.good(t, "console-grid-wrong")
	f.keys(t, kb.Escape)
	f.has(t, "pie", "minutes", "55")

	f.request(t, "PUT", "/dishes/pie", `{"price":3}`, nil)
	f.keys(t, kb.Enter)
	f.editing(t, "pie", "minutes", true)
	f.keys(t, "6", "0", kb.Enter)
	f.wrongAt(t, "pie", "minutes", "somebody else has changed the object")
	f.good(t, "console-grid-conflict")
	if typed := f.get(t, `document.activeElement.value`); typed != "60" {
		t.Errorf("what was typed is %q now", typed)
	}
	f.keys(t, kb.Escape)
	if d := f.dish(t, "pie"); d.Minutes != 55 || d.Price != 3 {
		t.Errorf("after a conflict: %+v", d)
	}

	// The session has ended.
	f.logOut(t)
	f.keys(t, kb.Enter)
	f.editing(t, "pie", "minutes", true)
	f.keys(t, "6", "0", kb.Enter)
	f.wrongAt(t, "pie", "minutes", "log in first")
	f.logIn(t)
	f.open(t, shownColumns)
	f.has(t, "pie", "minutes", "55")
}

// wrongAt waits until a cell that is edited says what is wrong.
func (f *fixture) wrongAt(t *testing.T, uuid, field, want string) {
	t.Helper()
	f.until(t, func() error {
		is, err := attempt[string](f, fmt.Sprintf(`(cell => cell.querySelector("[aria-invalid]") ?
			cell.querySelector("[role=alert]").textContent : "nothing")(document.querySelector(%q))`,
			cellOf(uuid, field)))
		if err == nil && !strings.Contains(is, want) {
			err = fmt.Errorf("the cell says %q, not %q", is, want)
		}
		return err
	})
}
