package browser

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	cdpinput "github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// The columns that are chosen are shown, and their widths are kept.
func (f *fixture) testGridColumns(t *testing.T) {
	f.open(t, gridPath)
	f.press(t, "Columns")
	f.click(t, `.choices input[value="price"]`)
	f.press(t, "Show these")
	header := `th[data-column="price"]`
	f.run(t, chromedp.WaitVisible(chromedp.CSS(header)))
	f.press(t, "minutes")
	f.run(t, chromedp.WaitVisible(chromedp.CSS(`th[data-column="minutes"][aria-sort="ascending"]`)),
		chromedp.WaitVisible(chromedp.CSS(header))) // which the order keeps

	width := func() int64 {
		t.Helper()
		return evaluate[int64](t, f, fmt.Sprintf(`Math.round(document.querySelector(%q).getBoundingClientRect().width)`,
			header))
	}
	before := width()
	f.run(t, chromedp.Focus(chromedp.CSS(header+" .resize")))
	f.keys(t, kb.ArrowRight, kb.ArrowRight)
	if now := width(); now < before+30 || now > before+34 {
		t.Errorf("the arrows have changed the width from %d to %d", before, now)
	}
	f.run(t, chromedp.WaitVisible(chromedp.CSS(header+" .resize")))
	at := evaluate[[]float64](t, f, fmt.Sprintf(`(r => [r.x + r.width / 2, r.y + r.height / 2])(
		document.querySelector(%q).getBoundingClientRect())`, header+" .resize"))
	before = width()
	for i, kind := range []cdpinput.DispatchMouseEventType{cdpinput.DispatchMouseEventTypeMousePressed,
		cdpinput.DispatchMouseEventTypeMouseMoved, cdpinput.DispatchMouseEventTypeMouseReleased} {
		f.run(t, chromedp.MouseEvent(kind, at[0]+float64(min(i, 1)*60), at[1], chromedp.ButtonLeft,
			chromedp.ClickCount(1)))
	}
	f.until(t, func() error {
		if now := width(); now < before+55 || now > before+65 {
			return fmt.Errorf("the mouse has changed the width from %d to %d", before, now)
		}
		return nil
	})
	before = width()
	f.open(t, gridPath+"?cols=title&cols=price")
	if now := width(); now < before-1 || now > before+1 {
		t.Errorf("the width was %d and is %d", before, now)
	}
	f.good(t, "console-grid-sized")
	f.press(t, "Columns")
	f.press(t, "The usual ones")
	f.at(t, gridPath)
}

// A filter is built, saved, and used again; the page has the request that lists the same.
func (f *fixture) testGridFilters(t *testing.T) {
	f.open(t, gridPath)
	f.press(t, "Build a filter")
	f.fill(t, "#field-0", "minutes")
	f.set(t, "op", ">=")
	f.fill(t, "#value-0", "90")
	f.press(t, "Add a condition")
	f.value(t, "filter", "minutes >= 90")
	f.fill(t, "#field-1", "title")
	f.fill(t, "#value-1", "Stew")
	f.keysIn(t, "#value-1", "\r")
	f.value(t, "filter", `minutes >= 90 && title == "Stew"`)
	f.has(t, "stew", "title", "Stew")

	f.press(t, "The same request to the API")
	f.shows(t, `--data-urlencode 'filter=minutes >= 90 && title == "Stew"'`)
	if !strings.Contains(f.get(t, `document.querySelector("#request").textContent`), "/dishes' --data-urlencode") {
		t.Error(f.get(t, `document.querySelector("#request").textContent`))
	}

	f.press(t, "Saved filters")
	f.fill(t, "#saved-name", "<b>slow</b>")
	f.press(t, "Save")
	f.shows(t, "<b>slow</b>")
	f.good(t, "console-grid-saved")
	f.open(t, gridPath)
	f.value(t, "filter", "")
	f.press(t, "Saved filters")
	f.press(t, "<b>slow</b>")
	f.value(t, "filter", `minutes >= 90 && title == "Stew"`)
	f.press(t, "Saved filters")
	f.press(t, "Remove")
	f.until(t, func() error {
		left, err := attempt[int64](f, `document.querySelectorAll("#saved li").length`)
		if err == nil && left != 0 {
			err = fmt.Errorf("%d saved filters are left", left)
		}
		return err
	})
}

// Several objects are changed and deleted at once, and what is refused is shown.
func (f *fixture) testGridSeveral(t *testing.T) {
	f.open(t, shownColumns)
	f.click(t, `thead .choose input`)
	f.shows(t, "4 chosen.")
	f.click(t, `input[name="uuid"][value="markup"]`)
	f.shows(t, "3 chosen.")
	f.fill(t, "#bulk-field", "minutes")
	f.fill(t, "#bulk-value", "20")
	f.press(t, "Continue…")
	f.shows(t, "3 objects are chosen.")
	f.good(t, "console-bulk")
	f.press(t, "Change them")
	f.at(t, gridPath+"/bulk")
	f.shows(t, "Changed\n3")
	f.good(t, "console-bulk-done")
	if minutes := f.dish(t, "stew").Minutes; minutes != 20 {
		t.Errorf("minutes are %d", minutes)
	}

	f.open(t, gridPath+"?filter=minutes+%3D%3D+20")
	f.click(t, `input[name="all"]`)
	f.fill(t, "#bulk-field", "minutes")
	f.fill(t, "#bulk-value", "0")
	f.press(t, "Continue…")
	f.shows(t, "3 objects match.")
	f.good(t, "console-bulk-all")
	f.press(t, "Change them")
	f.shows(t, "done, with refusals")
	f.shows(t, "at least 1")
	f.good(t, "console-bulk-refused")

	f.open(t, "/console/objects/Cooks")
	f.click(t, `thead .choose input`)
	f.set(t, "action", "delete")
	f.press(t, "Continue…")
	f.shows(t, "Delete these objects?")
	f.good(t, "console-bulk-delete")
	f.press(t, "Delete them")
	f.shows(t, "done, with refusals")

	f.open(t, shownColumns)
	f.click(t, `a[aria-label="Duplicate Soup"]`)
	f.at(t, gridPath+"/new?from=soup")
	f.value(t, "/title", "Soup")
	f.press(t, "Create")
	f.shows(t, "The object has been created.")
}

func (f *fixture) testGridWithoutScript(t *testing.T) {
	f.forbidScripts(t, true)
	defer f.forbidScripts(t, false)
	f.open(t, gridPath)
	f.press(t, "Build a filter")
	f.fill(t, "#field-0", "title")
	f.fill(t, "#value-0", "Stew")
	f.press(t, "Filter")
	f.value(t, "filter", `title == "Stew"`)
	f.press(t, "Columns")
	f.click(t, `.choices input[value="price"]`)
	f.press(t, "Show these")
	f.run(t, chromedp.WaitVisible(chromedp.CSS(`th[data-column="price"]`)))
	f.click(t, `input[name="uuid"][value="stew"]`)
	f.fill(t, "#bulk-field", "price")
	f.fill(t, "#bulk-value", "7.50")
	f.press(t, "Continue…")
	f.shows(t, "1 object is chosen.")
	f.press(t, "Change them")
	f.until(t, func() error { // without a script, the page is loaded again
		text, err := attempt[string](f, `document.body.innerText`)
		if err == nil && strings.Contains(text, "Cancel") {
			return errors.New("the question is still shown")
		}
		if err == nil && !strings.Contains(text, "Changed\n1") {
			_, err = attempt[bool](f, `(location.reload(), true)`)
			err = errors.Join(fmt.Errorf("the run has not ended: %s", text), err)
		}
		return err
	})
	if price := f.dish(t, "stew").Price; price != 7.5 {
		t.Errorf("the price is %v", price)
	}
	f.goodWithoutScript(t, "console-bulk-without-script")
}
