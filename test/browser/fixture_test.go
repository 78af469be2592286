package browser

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
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

	"github.com/chromedp/cdproto"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"belfry/test/backing"
	"belfry/test/kit"
	"belfry/test/kit/programs"
	"belfry/test/process"
)

// patience is how long a page may take, on a processor that does nothing else. Most need a tenth of a second.
const patience = time.Minute

// fixture is a belfry and a tab of the one browser of this package. Tests are its subtests, in their order: what one
// leaves, the next finds.
type fixture struct {
	URL       string
	server    *process.Server
	top       *testing.T // whose end is the end of the processes
	folder    string     // of the configuration and the data
	backend   string     // added to the configuration that serveStores writes
	worksOnly bool       // pages are not checked for what axe finds and how they look
	tab       context.Context
	axe       string          // the script
	pictures  map[string]bool // that docs show: whether they have been taken

	mu         sync.Mutex
	complaints []string // of the browser, since the last check
}

// start starts the browser, and a belfry on an empty folder.
func start(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{top: t, folder: t.TempDir(), pictures: picturesOfDocs(t, false)}
	f.write(t, "belfry.yaml", []byte("listen: 127.0.0.1:0\nbus: {listen: \"127.0.0.1:0\"}\n"))
	f.serve(t)
	f.axe = axeScript(t)
	f.tab = openBrowser(t)
	go f.listen(chromedp.Console(f.tab))
	return f
}

func axeScript(t *testing.T) string {
	t.Helper()
	script, err := os.ReadFile(filepath.Join(backing.NPM(t, "test/servers/axe"), "node_modules", "axe-core",
		"axe.min.js"))
	if err != nil {
		t.Fatal(err)
	}
	return string(script)
}

// openTab opens a tab with cookies of its own: cookies are for a host, whatever the port is.
func (f *fixture) openTab(t *testing.T, browser context.Context) {
	t.Helper()
	tab, closeTab := chromedp.NewContext(browser, chromedp.WithNewBrowserContext())
	t.Cleanup(closeTab)
	if err := chromedp.Do(tab); err != nil {
		t.Fatal(err)
	}
	f.tab = tab
	go f.listen(chromedp.Console(tab))
}

// starts is how often a Chromium is started that ends before its first page: on a loaded machine one crashed there, in
// sixteen runs of all tests. What happens after its first page is belfry's to explain.
const starts = 3

// openBrowser starts a Chromium that reaches nothing outside of this machine, and returns its tab.
func openBrowser(t *testing.T, more ...chromedp.ExecAllocatorOption) context.Context {
	t.Helper()
	path, err := programs.Chromium()
	if err != nil {
		t.Fatal(err)
	}
	return openProgram(t, path, more...)
}

// openProgram is openBrowser for the Chromium at a path.
func openProgram(t *testing.T, path string, more ...chromedp.ExecAllocatorOption) context.Context {
	t.Helper()
	var failed error
	for range starts {
		options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path),
			chromedp.UserDataDir(t.TempDir()),
			chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost"),
			chromedp.WindowSize(int(wide.width), 900), chromedp.Flag("disable-gpu", true), chromedp.WSURLReadTimeout(kit.Limit))
		options = append(options, more...)
		if os.Getuid() == 0 {
			options = append(options, chromedp.NoSandbox) // Chromium refuses root otherwise
		}
		allocator, stop := chromedp.NewExecAllocator(context.Background(), options...)
		tab, closeTab := chromedp.NewContext(allocator)
		if failed = chromedp.Do(tab); failed == nil {
			t.Cleanup(func() { closeTab(); stop() })
			return tab
		}
		closeTab()
		stop()
		t.Logf("starting %s: %v", path, failed)
	}
	t.Fatalf("starting %s failed %d times, at last: %v", path, starts, failed)
	return nil
}

// listen collects what the browser complains about: errors of scripts, and what the Content-Security-Policy refuses.
// That a request is refused is no complaint, as pages show it, and neither is that one ended because the page was left:
// htmx writes both events of that as errors.
func (f *fixture) listen(messages iter.Seq2[chromedp.ConsoleMessage, error]) {
	for m, err := range messages {
		if err != nil {
			return // the browser has been closed
		}
		text := m.String()
		left := strings.Contains(text, "htmx:sendAbort") || strings.Contains(text, "htmx:afterRequest")
		if m.Source != "network" && !left && (m.IsException() || m.Type == "error") {
			f.mu.Lock()
			f.complaints = append(f.complaints, text)
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

// run does something in the browser. Pages replace parts of themselves while they are used: when the element is
// replaced after an action has found it, and before it is used, the action is done again.
func (f *fixture) run(t *testing.T, actions ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	ctx, cancel := kit.Patience(f.tab, patience)
	defer cancel()
	for _, action := range actions {
		err := chromedp.Do(ctx, action)
		for wasReplaced(err) {
			err = chromedp.Do(ctx, action)
		}
		if err != nil {
			t.Fatalf("%v\nat %s:\n%s", err, f.get(t, `location.href`), f.get(t, `document.body.innerText`))
		}
	}
}

// wasReplaced reports whether an action failed because its element is no longer part of the page.
func wasReplaced(err error) bool {
	var refused *cdproto.Error
	return errors.As(err, &refused) && strings.Contains(strings.ToLower(refused.Message), "node with given id")
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
	ctx, cancel := kit.Patience(f.tab, patience)
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
	if f.hasEditor(t, selector) {
		f.enter(t, selector, text)
		return
	}
	evaluate[bool](t, f, fmt.Sprintf(`(document.querySelector(%q).value = "", true)`, selector))
	f.keysIn(t, selector, text)
}

// keysIn presses keys in a field. SendKeys would read the attributes of its node without their lock, while the browser
// changes them.
func (f *fixture) keysIn(t *testing.T, selector, keys string) {
	t.Helper()
	f.run(t, chromedp.Focus(chromedp.CSS(selector), chromedp.NodeVisible), chromedp.KeyEvent(keys))
}

// hasEditor waits for a field, and reports whether an editor shows it, which scripts put in its place.
func (f *fixture) hasEditor(t *testing.T, selector string) (has bool) {
	t.Helper()
	f.until(t, func() error {
		shown, err := attempt[string](f, fmt.Sprintf(`(field => document.readyState !== "complete" ? "" :
			field?.closest("code-editor")?.view ? "in an editor" : field?.checkVisibility() ? "by itself" : "")(
			document.querySelector(%q))`, selector))
		if err == nil && shown == "" {
			err = fmt.Errorf("no %s is shown", selector)
		}
		has = shown == "in an editor"
		return err
	})
	return has
}

// click clicks what is visible.
func (f *fixture) click(t *testing.T, selector string) {
	t.Helper()
	f.run(t, chromedp.Click(chromedp.CSS(selector), chromedp.NodeVisible))
}

// press clicks the button or link of a text.
func (f *fixture) press(t *testing.T, text string) {
	t.Helper()
	f.run(t, chromedp.Click(chromedp.Search(
		fmt.Sprintf(
			`//main//*[self::button or self::a or self::summary][normalize-space()=%q] | //header//*[self::button or self::a][normalize-space()=%q] | //nav[@id="side"]//*[self::button or self::a][not(self::a and ancestor::ul[@id="side-list"])][normalize-space()=%q]`, text, text, text)), chromedp.NodeVisible))
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
		at, err := attempt[string](f,
			`document.readyState === "complete" ? location.pathname + location.search : "loading"`)
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
func (f *fixture) screen(t *testing.T, l look) {
	t.Helper()
	ctx, cancel := kit.Patience(f.tab, patience)
	defer cancel()
	_, err := chromedp.Call(ctx,
		emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: l.width, Height: 900,
			DeviceScaleFactor: 1, Mobile: l.width < 600})
	if err == nil {
		_, err = chromedp.Call(ctx,
			emulation.SetEmulatedMedia,
			emulation.SetEmulatedMediaParams{
				Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: l.scheme}}})
	}
	if err != nil {
		t.Fatal(err)
	}
	// Scripts that follow the color scheme have done so after two frames.
	evaluate[bool](t, f, `new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))`,
		chromedp.EvalAwaitPromise)
}

// look is a size of the screen and a color scheme.
type look struct {
	width  int64
	scheme string
}

// wide is how parts of the test find the screen.
var wide = look{1280, "light"}

// looks are those in which each page is checked.
var looks = []look{{360, "dark"}, {360, "light"}, {1280, "dark"}, {1280, "light"}}

// good checks the page that is open: axe finds nothing serious, nothing sticks out, and the browser has no complaint.
// It leaves a wide, light screen.
func (f *fixture) good(t *testing.T, name string) {
	t.Helper()
	if !f.worksOnly {
		for _, l := range looks {
			f.screen(t, l)
			f.accessible(t, fmt.Sprintf("%s, %s at %d", name, l.scheme, l.width))
			if is := evaluate[int64](t, f, `document.documentElement.scrollWidth`); is > l.width {
				t.Errorf("%s is %d wide on a screen of %d", name, is, l.width)
			}
			f.variant(t, fmt.Sprintf("%s-%d-%s", name, l.width, l.scheme))
		}
		f.screen(t, wide)
		f.picture(t, name)
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
	found := evaluate[[]violation](t, f,
		`axe.run(document, {resultTypes: ["violations"]}).then(r => r.violations.map(v =>
		({id: v.id, impact: v.impact, help: v.help, nodes: v.nodes.map(n => ({html: n.html, failureSummary: n.failureSummary}))})))`, chromedp.EvalAwaitPromise)
	for _, v := range found {
		text := fmt.Sprintf("%s: %s, %s: %s", where, v.Impact, v.ID, v.Help)
		for _, n := range v.Nodes {
			text += "\n  " + n.HTML + "\n  " + n.FailureSummary
		}
		if v.Impact == "serious" || v.Impact == "critical" || strings.HasPrefix(v.ID, "landmark-") {
			t.Error(text)
		} else {
			t.Log(text)
		}
	}
}

// request sends a request of a program, and decodes the reply into v unless that is nil. headers are names and values
// in turn.
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
	out, complaints, exit, err := process.Run(process.Commands(t), args...)
	if err != nil || exit != 0 {
		t.Fatalf("belfry %v: %v, %d\n%s", args, err, exit, complaints)
	}
	return out
}
