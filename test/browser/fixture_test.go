package browser

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"iter"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"belfry/test/backing"
	"belfry/test/kit"
	"belfry/test/kit/programs"
	"belfry/test/process"
)

var (
	screenshots = flag.String("screenshots", "", "the folder to write pictures of the pages to")
	variants    = flag.Bool("variants", false, "also write pictures of the pages in dark mode and on small screens")
)

// patience is how long a page may take. Most need a tenth of a second; a busy machine needs more.
const patience = time.Minute

// fixture is the one browser and the one belfry of this package. Tests are its subtests, in their order: what one
// leaves, the next finds.
type fixture struct {
	URL    string
	server *process.Server
	config string
	data   string
	tab    context.Context
	axe    string // the script

	mu         sync.Mutex
	complaints []string // of the browser, since the last check
}

func start(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{config: "testdata/belfry.yaml"}
	f.data = t.TempDir()
	f.server = process.Serve(t, f.config, "--data", f.data)
	f.URL = f.server.URL
	script, err := os.ReadFile(filepath.Join(backing.NPM(t, "test/servers/axe"), "node_modules", "axe-core", "axe.min.js"))
	if err != nil {
		t.Fatal(err)
	}
	f.axe = string(script)
	f.tab = openBrowser(t)
	go f.listen(chromedp.Console(f.tab))
	return f
}

// openBrowser starts a Chromium that reaches nothing outside of this machine, and returns its tab.
func openBrowser(t *testing.T) context.Context {
	t.Helper()
	path, err := programs.Chromium()
	if err != nil {
		t.Fatal(err)
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.UserDataDir(t.TempDir()),
		chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"), chromedp.Flag("disable-gpu", true),
		chromedp.WSURLReadTimeout(patience))
	if os.Getuid() == 0 {
		options = append(options, chromedp.NoSandbox) // Chromium refuses root otherwise
	}
	allocator, stop := chromedp.NewExecAllocator(context.Background(), options...)
	tab, closeTab := chromedp.NewContext(allocator)
	t.Cleanup(func() { closeTab(); stop() })
	if err := chromedp.Do(tab); err != nil {
		t.Fatalf("starting %s: %v", path, err)
	}
	return tab
}

// listen collects what the browser complains about: errors of scripts, and what the Content-Security-Policy refuses.
// That a request is refused is no complaint: pages show it.
func (f *fixture) listen(messages iter.Seq2[chromedp.ConsoleMessage, error]) {
	for m, err := range messages {
		if err != nil {
			return // the browser has been closed
		}
		if m.Source != "network" && (m.IsException() || m.Type == "error") {
			f.mu.Lock()
			f.complaints = append(f.complaints, m.String())
			f.mu.Unlock()
		}
	}
}

// checkComplaints fails the test for what the browser has complained about.
func (f *fixture) checkComplaints(t *testing.T) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, text := range f.complaints {
		t.Errorf("the browser says: %s", text)
	}
	f.complaints = nil
}

// run does something in the browser.
func (f *fixture) run(t *testing.T, actions ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	ctx, cancel := context.WithTimeout(f.tab, patience)
	defer cancel()
	if err := chromedp.Do(ctx, actions...); err != nil {
		t.Fatalf("%v\nat %s:\n%s", err, f.get(t, `location.href`), f.get(t, `document.body.innerText`))
	}
}

// evaluate returns the value of an expression in the page.
func evaluate[T any](t *testing.T, f *fixture, expression string, options ...chromedp.EvaluateOption) T {
	t.Helper()
	value, err := attempt[T](f, expression, options...)
	if err != nil {
		t.Fatal(err)
	}
	return value
}

// attempt is evaluate while a page may be replaced by another.
func attempt[T any](f *fixture, expression string, options ...chromedp.EvaluateOption) (T, error) {
	ctx, cancel := context.WithTimeout(f.tab, patience)
	defer cancel()
	value, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, options...))
	if err != nil {
		err = fmt.Errorf("%s: %w", expression[:min(len(expression), 100)], err)
	}
	return value, err
}

// get returns a text of the page.
func (f *fixture) get(t *testing.T, expression string) string {
	t.Helper()
	return evaluate[string](t, f, expression)
}

// open opens a page.
func (f *fixture) open(t *testing.T, path string) {
	t.Helper()
	f.run(t, chromedp.Navigate(f.URL+path), chromedp.WaitReady(chromedp.CSS("main")))
}

// fill types into a field after emptying it. Clear would empty the attribute alone, and not what was typed before.
func (f *fixture) fill(t *testing.T, selector, text string) {
	t.Helper()
	f.run(t, chromedp.WaitVisible(chromedp.CSS(selector)))
	evaluate[bool](t, f, fmt.Sprintf(`(document.querySelector(%q).value = "", true)`, selector))
	f.run(t, chromedp.SendKeys(chromedp.CSS(selector), text))
}

// click clicks what is visible.
func (f *fixture) click(t *testing.T, selector string) {
	t.Helper()
	f.run(t, chromedp.Click(chromedp.CSS(selector), chromedp.NodeVisible))
}

// press clicks the button or link of a text.
func (f *fixture) press(t *testing.T, text string) {
	t.Helper()
	f.run(t, chromedp.Click(chromedp.Search(fmt.Sprintf(`//main//*[self::button or self::a or self::summary][normalize-space()=%q] | //header//*[self::button or self::a][normalize-space()=%q]`, text, text)), chromedp.NodeVisible))
}

// text returns what a page shows.
func (f *fixture) text(t *testing.T) string {
	t.Helper()
	return f.get(t, `document.body.innerText`)
}

// shows waits until the page shows a text.
func (f *fixture) shows(t *testing.T, text string) {
	t.Helper()
	f.until(t, func() error {
		all, err := attempt[string](f, `document.body.innerText`)
		if err != nil {
			return err
		}
		if !strings.Contains(all, text) {
			return fmt.Errorf("the page does not show %q, but:\n%s", text, all)
		}
		return nil
	})
}

// at waits until the browser is at a path.
func (f *fixture) at(t *testing.T, path string) {
	t.Helper()
	f.until(t, func() error {
		at, err := attempt[string](f, `document.readyState === "complete" ? location.pathname + location.search : "loading"`)
		if err != nil {
			return err
		}
		if at != path {
			return fmt.Errorf("the browser is at %s, not %s", at, path)
		}
		return nil
	})
}

func (f *fixture) until(t *testing.T, right func() error) {
	t.Helper()
	if err := kit.Await(patience, right); err != nil {
		t.Fatal(err)
	}
}

// screen sets size and color scheme.
func (f *fixture) screen(t *testing.T, width int64, scheme string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(f.tab, patience)
	defer cancel()
	_, err := chromedp.Call(ctx, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: width, Height: 900, DeviceScaleFactor: 1, Mobile: width < 600})
	if err == nil {
		_, err = chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
	}
	if err != nil {
		t.Fatal(err)
	}
	// Scripts that follow the color scheme have done so after two frames.
	evaluate[bool](t, f, `new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))`, chromedp.EvalAwaitPromise)
}

// picture writes a picture of the page that docs show, if the flag asks for it.
func (f *fixture) picture(t *testing.T, name string) {
	t.Helper()
	if *screenshots == "" {
		return
	}
	ctx, cancel := context.WithTimeout(f.tab, patience)
	defer cancel()
	take := chromedp.CaptureScreenshot() // what a screen shows
	if *variants {
		take = chromedp.FullScreenshot(100)
	}
	png, err := chromedp.Run(ctx, take)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(*screenshots, name+".png"), png, 0o644); err != nil {
		t.Fatal(err)
	}
}

// good checks the page that is open: in light and dark and on a small screen axe finds nothing serious, nothing
// sticks out, and the browser has no complaint. It leaves a wide, light screen.
func (f *fixture) good(t *testing.T, name string) {
	t.Helper()
	for _, v := range []struct {
		width  int64
		scheme string
	}{{360, "dark"}, {360, "light"}, {1280, "dark"}, {1280, "light"}} {
		f.screen(t, v.width, v.scheme)
		f.accessible(t, fmt.Sprintf("%s, %s at %d", name, v.scheme, v.width))
		if is := evaluate[int64](t, f, `document.documentElement.scrollWidth`); is > v.width {
			t.Errorf("%s is %d wide on a screen of %d", name, is, v.width)
		}
		switch {
		case v.width == 1280 && v.scheme == "light":
			f.picture(t, name)
		case *variants:
			f.picture(t, fmt.Sprintf("%s-%d-%s", name, v.width, v.scheme))
		}
	}
	f.checkComplaints(t)
}

// accessible checks the page by axe.
func (f *fixture) accessible(t *testing.T, where string) {
	t.Helper()
	if !evaluate[bool](t, f, `typeof axe === "object"`) {
		evaluate[bool](t, f, f.axe+"; true")
	}
	type node struct {
		HTML           string `json:"html"`
		FailureSummary string `json:"failureSummary"`
	}
	type violation struct {
		ID     string `json:"id"`
		Impact string `json:"impact"`
		Help   string `json:"help"`
		Nodes  []node `json:"nodes"`
	}
	found := evaluate[[]violation](t, f, `axe.run(document, {resultTypes: ["violations"]}).then(r => r.violations.map(v =>
		({id: v.id, impact: v.impact, help: v.help, nodes: v.nodes.map(n => ({html: n.html, failureSummary: n.failureSummary}))})))`, chromedp.EvalAwaitPromise)
	for _, v := range found {
		text := fmt.Sprintf("%s: %s, %s: %s", where, v.Impact, v.ID, v.Help)
		for _, n := range v.Nodes {
			text += "\n  " + n.HTML + "\n  " + n.FailureSummary
		}
		if v.Impact == "serious" || v.Impact == "critical" {
			t.Error(text)
		} else {
			t.Log(text)
		}
	}
}

// request sends a request of a program, and decodes the reply into v unless that is nil. headers are names and values in
// turn.
func (f *fixture) request(t *testing.T, method, path, body string, v any, headers ...string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, f.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	for pair := range slices.Chunk(headers, 2) {
		req.Header.Set(pair[0], pair[1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	data, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode >= http.StatusBadRequest {
		t.Fatalf("%s %s: %s %s, %v", method, path, resp.Status, data, err)
	}
	if v != nil {
		if err := json.NewDecoder(bytes.NewReader(data)).Decode(v); err != nil {
			t.Fatal(err)
		}
	}
}

// belfry runs a command on the belfry that serves.
func (f *fixture) belfry(t *testing.T, args ...string) string {
	t.Helper()
	out, complaints, exit, err := process.Run(process.Program(t), args...)
	if err != nil || exit != 0 {
		t.Fatalf("belfry %v: %v, %d\n%s", args, err, exit, complaints)
	}
	return out
}
