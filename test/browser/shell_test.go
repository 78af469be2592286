package browser

import (
	"fmt"
	"strings"
	"testing"

	scripts "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// TestShell uses the frame of the console: the sidebar, the dialog that leads anywhere, notices, and the theme.
func TestShell(t *testing.T) {
	f := &fixture{top: t, folder: t.TempDir(), worksOnly: true}
	config := strings.Builder{}
	config.WriteString("listen: 127.0.0.1:0\nbus: {listen: \"127.0.0.1:0\"}\nstores:\n")
	for i := range 40 {
		fmt.Fprintf(&config, "  Store%d: {title: name, expose: {list: true, events: true}}\n", 10+i)
	}
	f.write(t, "belfry.yaml", []byte(config.String()))
	f.serve(t)
	f.axe = axeScript(t)
	f.tab = openBrowser(t)
	go f.listen(chromedp.Console(f.tab))
	f.makeFirstAdmin(t)
	f.worksOnly = false
	f.screen(t, wide)
	f.request(t, "POST", "/store10", `{"uuid":"emma","name":"Emma Woodhouse"}`, nil)
	for _, part := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"sidebar", f.testSidebar}, {"menu", f.testMenu}, {"palette", f.testPalette}, {"notices", f.testNotices},
		{"theme", f.testTheme}, {"late", f.testLateStream}, {"seven tabs", f.testSevenTabs},
	} {
		t.Run(part.name, part.run)
		f.checkComplaints(t)
	}
}

// testSidebar filters forty stores, opens one by the keyboard alone, and pins it.
func (f *fixture) testSidebar(t *testing.T) {
	f.open(t, "/console/objects")
	f.good(t, "console-sidebar")
	f.run(t, chromedp.Focus(chromedp.CSS("#side-filter")))
	f.keys(t, "store4")
	f.until(t, func() error { return f.counts(`#side-list > li:not([hidden])`, 10) })
	f.keys(t, kb.Escape)
	f.until(t, func() error { return f.counts(`#side-list > li:not([hidden])`, 42) })
	f.keys(t, "store42", kb.Enter)
	f.at(t, "/console/objects/Store42")
	f.press(t, "Pin")
	f.shows(t, "Store42 is pinned.")
	f.at(t, "/console/objects/Store42")
	if first := f.get(t, `document.querySelector("#side-list a").firstChild.textContent`); first != "Store42" {
		t.Errorf("the first store is %s", first)
	}
	f.good(t, "console-pinned")
	f.press(t, "Undo")
	f.shows(t, "Store42 is no longer pinned.")
}

// counts returns an error unless a selector finds so many elements.
func (f *fixture) counts(selector string, want int) error {
	n, err := attempt[int](f, fmt.Sprintf(`document.querySelectorAll(%q).length`, selector))
	if err == nil && n != want {
		err = fmt.Errorf("%d elements are %s, not %d", n, selector, want)
	}
	return err
}

// testMenu opens the sidebar on a small screen by the keyboard, closes it by Escape, and follows a link of it.
func (f *fixture) testMenu(t *testing.T) {
	f.screen(t, look{360, "light"})
	defer f.screen(t, wide)
	f.open(t, "/console/objects")
	shown := func(want bool) {
		t.Helper()
		f.until(t, func() error {
			is, err := attempt[bool](f, `document.querySelector("#side").checkVisibility()`)
			if err == nil && is != want {
				err = fmt.Errorf("the menu is shown: %t", is)
			}
			return err
		})
	}
	shown(false)
	f.run(t, chromedp.Focus(chromedp.CSS(`.bar .menu`)))
	f.keys(t, kb.Enter)
	shown(true)
	f.accessible(t, "menu")
	f.keys(t, kb.Tab)
	f.focusNamed(t, "belfry")
	f.keys(t, kb.Escape)
	shown(false)
	f.focusNamed(t, "Menu")
	f.keys(t, kb.Enter)
	shown(true)
	f.click(t, `#side a[href$="/console/system"]`)
	f.at(t, "/console/system")
	shown(false)
	if is := evaluate[int64](t, f, `document.documentElement.scrollWidth`); is > 360 {
		t.Errorf("the page is %d wide", is)
	}
}

// testPalette goes to a store, a page, an object, a user and a page of the documentation by Ctrl-K.
func (f *fixture) testPalette(t *testing.T) {
	for _, c := range []struct{ query, first, at string }{
		{"store31", "Store31", "/console/objects/Store31"},
		{"sys", "System", "/console/system"},
		{"emma", "Emma Woodhouse", "/console/objects/Store10/object/emma"},
		{"dead letters", "", "/console/docs/"},
		{address, address, "/console/users/"},
	} {
		f.open(t, "/console/objects")
		f.run(t, chromedp.KeyEvent("k", chromedp.KeyModifiers(2))) // Ctrl
		f.run(t, chromedp.WaitVisible(chromedp.CSS("#go-to")))
		f.keys(t, c.query)
		f.until(t, func() error {
			is, err := attempt[string](f, `document.querySelector("#go-status").textContent.endsWith("found") &&
				document.querySelector("#go-list [aria-selected=true] > span")?.textContent || ""`)
			if err == nil && (is == "" || c.first != "" && is != c.first) {
				err = fmt.Errorf("%q is found first for %q", is, c.query)
			}
			return err
		})
		if c.query == "emma" {
			f.accessible(t, "palette")
			f.keys(t, kb.ArrowDown, kb.ArrowUp)
		}
		f.keys(t, kb.Enter)
		f.until(t, func() error {
			at, err := attempt[string](f, `document.readyState === "complete" ? location.pathname : ""`)
			if err == nil && !strings.HasPrefix(at, c.at) {
				err = fmt.Errorf("the browser is at %s, not %s", at, c.at)
			}
			return err
		})
	}
	f.open(t, "/console/objects")
	f.click(t, "#go-open")
	f.keys(t, kb.Escape)
	f.until(t, func() error { return f.counts("dialog[open]", 0) })
	f.open(t, "/console/go?q=emma")
	f.shows(t, "Object of Store10")
	f.good(t, "console-go")
}

// testNotices deletes an object and undoes it, undoes a change in the list, and dismisses a notice by the keyboard.
func (f *fixture) testNotices(t *testing.T) {
	const emma = "/console/objects/Store10/object/emma"
	f.open(t, emma+"/delete")
	f.press(t, "Delete")
	f.shows(t, "Emma Woodhouse has been deleted.")
	f.good(t, "console-deleted")
	f.press(t, "Undo")
	f.at(t, emma)
	f.shows(t, "Emma Woodhouse has been created again, without its files")
	f.keys(t, kb.Escape)
	f.until(t, func() error { return f.counts("main > .notice", 0) })

	f.open(t, "/console/objects/Store10")
	f.click(t, cellOf("emma", "name"))
	f.keys(t, kb.Enter)
	f.editing(t, "emma", "name", true)
	f.keys(t, "Emma Knightley", kb.Enter)
	f.has(t, "emma", "name", "Emma Knightley")
	f.shows(t, "name has been saved.")
	f.press(t, "Undo")
	f.has(t, "emma", "name", "Emma Woodhouse")
	f.shows(t, "The change of name has been undone.")
	f.click(t, "[data-dismiss]")
	f.until(t, func() error { return f.counts("main > .notice", 0) })
}

// testTheme chooses a theme, which each page has from the first byte on.
func (f *fixture) testTheme(t *testing.T) {
	scheme := func(want string) {
		t.Helper()
		f.until(t, func() error {
			is, err := attempt[string](f, `getComputedStyle(document.documentElement).colorScheme`)
			if err == nil && is != want {
				err = fmt.Errorf("the color scheme is %s, not %s", is, want)
			}
			return err
		})
	}
	f.open(t, "/console/objects/Store10")
	scheme("light dark")
	for _, c := range []struct{ name, scheme string }{{"Dark", "dark"}, {"Light", "light"}, {"Automatic", "light dark"}} {
		f.press(t, c.name)
		scheme(c.scheme)
		f.at(t, "/console/objects/Store10")
		if c.name == "Dark" {
			f.accessible(t, "dark by choice")
		}
	}
}

// lateStream keeps the first message until begin is called. The connection is open meanwhile.
const lateStream = `{
	let begun = false;
	globalThis.EventSource = class extends EventSource {
		addEventListener(name, act) {
			super.addEventListener(name, (message) => {
				if (begun) return act(message);
				document.body.dataset.opened = 'yes';
				globalThis.begin = () => { begun = true; act(message); };
			});
		}
	};
}`

// testLateStream opens the events with a stream that is slow to begin, and hides the tab before. The page is not live
// until then, whatever the connection is, and misses nothing afterwards.
func (f *fixture) testLateStream(t *testing.T) {
	script := call(t, f, scripts.AddScriptToEvaluateOnNewDocument,
		scripts.AddScriptToEvaluateOnNewDocumentParams{Source: lateStream}).Identifier
	defer call(t, f, scripts.RemoveScriptToEvaluateOnNewDocument,
		scripts.RemoveScriptToEvaluateOnNewDocumentParams{Identifier: script})
	f.open(t, "/console/live")
	f.until(t, func() error { return f.counts("body[data-opened]", 1) })
	if said := f.get(t, `document.getElementById("status").textContent`); said != "Connecting, 0 events" {
		t.Errorf("before the stream begins the page says %q", said)
	}
	f.visibility(t, "hidden")
	f.shows(t, "Waiting while this tab is hidden, 0 events")
	evaluate[bool](t, f, "(begin(), true)")
	f.request(t, "POST", "/store11", `{"uuid":"late"}`, nil)
	f.visibility(t, "visible")
	f.shows(t, "Live, 1 event")
}

// testSevenTabs opens the events in seven tabs, of which six are hidden: the seventh and other pages still load.
func (f *fixture) testSevenTabs(t *testing.T) {
	var tabs []*fixture
	for range 7 {
		tab, closeTab := chromedp.NewContext(f.tab)
		defer closeTab()
		if err := chromedp.Do(tab); err != nil {
			t.Fatal(err)
		}
		one := &fixture{URL: f.URL, server: f.server, tab: tab}
		one.open(t, "/console/live")
		one.shows(t, "Live, 0 events")
		tabs = append(tabs, one)
		if len(tabs) < 7 {
			one.visibility(t, "hidden")
			one.shows(t, "Waiting while this tab is hidden, 0 events")
		}
	}
	f.open(t, "/console/system") // the eighth
	f.request(t, "POST", "/store11", `{"uuid":"hidden-1"}`, nil)
	tabs[6].shows(t, "Live, 1 event")
	for _, one := range tabs[:2] {
		one.visibility(t, "visible")
		one.shows(t, "Live, 1 event") // of while it was hidden
	}
}

// visibility makes a tab hidden or visible for its page: a browser without a window has no tab in front of another.
func (f *fixture) visibility(t *testing.T, state string) {
	t.Helper()
	evaluate[bool](t, f, fmt.Sprintf(`(Object.defineProperty(document, "visibilityState", {value: %q, configurable: true}),
		document.dispatchEvent(new Event("visibilitychange")))`, state))
}
