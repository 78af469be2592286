package browser

import (
	"fmt"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// A value that is edited and left as it is stays what it was, also one that its input can't show. What the browser keeps
// about the list may be of any kind, and columns may have any name.
func (f *fixture) testGridUnchanged(t *testing.T) {
	const odd = `{"uuid":"odd","title":"Odd","day":"2026-02-31","note":"spaces  ","constructor":"x"}`
	f.request(t, "POST", "/dishes", odd, nil)
	stored := func() (o struct {
		Day, Note, Constructor *string
		Updated                string
	}) {
		t.Helper()
		f.request(t, "GET", "/dishes/odd", "", &o)
		return o
	}
	before := stored()
	path := gridPath + "?cols=day&cols=note&cols=constructor&filter=title+%3D%3D+%22Odd%22"
	f.open(t, path)
	for _, field := range []string{"day", "note", "constructor"} {
		f.run(t, chromedp.DoubleClick(chromedp.CSS(cellOf("odd", field))))
		f.editing(t, "odd", field, true)
		f.run(t, chromedp.Focus(chromedp.CSS(`input[name="filter"]`)))
		f.editing(t, "odd", field, false)
	}
	if now := stored(); now.Day == nil || *now.Day != "2026-02-31" || now.Updated != before.Updated {
		t.Errorf("%+v, was %+v", now, before)
	}
	for _, kept := range []string{`"text"`, `5`, `[1]`, `{"constructor":{},"day":"wide"}`, `{`, `null`} {
		evaluate[bool](t, f, fmt.Sprintf(`(["widths", "filters"].forEach(kind =>
			localStorage.setItem("belfry-" + kind + ":Dishes", %q)), true)`, kept))
		f.open(t, path)
		if evaluate[bool](t, f, `document.getElementById("cells").classList.contains("sized")`) {
			t.Errorf("widths %s: the table has widths", kept)
		}
		f.run(t, chromedp.Focus(chromedp.CSS(`th[data-column="constructor"] .resize`)))
		f.keys(t, kb.ArrowRight)
		if !evaluate[bool](t, f, `document.getElementById("cells").classList.contains("sized")`) {
			t.Errorf("widths %s: the table takes no width", kept)
		}
	}
	evaluate[bool](t, f, `(localStorage.clear(), true)`)
	f.request(t, "DELETE", "/dishes/odd", "", nil)
}
