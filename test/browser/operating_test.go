package browser

import (
	"testing"

	"github.com/chromedp/chromedp"
)

// testOperating makes, verifies and downloads a backup, sends a test mail, and follows an error to its lines in the log.
func (f *fixture) testOperating(t *testing.T) {
	f.open(t, "/console/backup")
	f.shows(t, "There is none yet")
	f.good(t, "")
	f.press(t, "Back up now")
	f.shows(t, "not verified lately") // the page loads itself again
	f.click(t, `form[action$="/backup/verify"] button`)
	f.shows(t, "Every part has its hash")
	f.shows(t, "verified 20")
	f.shows(t, "restore --config")
	f.screen(t, look{360, "light"})
	if right := evaluate[float64](t, f, `Math.max(...[...document.querySelectorAll("td.acts :is(a, button)")].map(
		e => e.getBoundingClientRect().right))`); right <= 0 || right > 340 {
		t.Errorf("the actions of a backup end at %g of 360: they need a scroll", right)
	}
	f.screen(t, wide)
	f.good(t, "console-backups")
	if size := evaluate[int64](t, f, `fetch(document.querySelector('a[href*="/download/"]').href)
		.then(r => r.arrayBuffer()).then(b => b.byteLength)`, chromedp.EvalAwaitPromise); size < 10_000 {
		t.Errorf("a download has %d bytes", size)
	}

	f.open(t, "/console/settings")
	f.fill(t, "#to", "ada@example.com")
	f.press(t, "Send a test mail")
	f.shows(t, "was written into the folder")
	f.shows(t, "Last test")
	f.good(t, "console-settings")

	f.open(t, "/console/nothing")
	f.click(t, `a[href*="/console/logs?request="]`)
	f.shows(t, "No line that is kept matches") // it is not a failure of the server
	f.open(t, "/console/logs?q=a+test+mail+was+requested")
	f.until(t, func() error { return f.counts(".log li:not(.newer)", 1) })
	evaluate[int64](t, f, `fetch("/console/settings/mail", {method: "POST",
		body: new URLSearchParams({to: "ada@example.com"})}).then(r => r.status)`, chromedp.EvalAwaitPromise)
	f.until(t, func() error { return f.counts(".log li:not(.newer)", 2) }) // the page follows the log
	f.open(t, "/console/logs?q=backup")
	f.shows(t, "a backup was made")
	f.shows(t, "a backup is being downloaded from the console")
	f.good(t, "console-logs")
	f.click(t, ".log a")
	f.shows(t, "All lines")
	f.good(t, "")
}
