package browser

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/chromedp/chromedp"

	"belfry/pkg/bus"
	"belfry/pkg/listener"
	"belfry/test/process"
)

var firstLink = regexp.MustCompile(`http://\S+(/console/first\?token=\S+)`)

// testFirstHour is what people do first with belfry: from an empty folder to stores whose copies are verified.
func (f *fixture) testFirstHour(t *testing.T) {
	link := f.makeFirstAdmin(t)
	f.shows(t, "There is no store for your own objects yet")
	f.good(t, "console-no-stores")
	f.useLinkAgain(t, link)

	if err := f.server.Stop(); err != nil {
		t.Fatal(err)
	}
	f.serveStores(t)
	if firstLink.MatchString(f.server.Banner) {
		t.Errorf("another link, although there is an admin:\n%s", f.server.Banner)
	}
	f.open(t, "/console")
	f.at(t, "/console/objects") // the session has outlived the restart
	f.useStores(t)

	f.press(t, "Log out")
	f.at(t, "/console/login")
}

// useLinkAgain opens the link for the first admin in the browser that has used it, and in another one.
func (f *fixture) useLinkAgain(t *testing.T, link string) {
	f.open(t, link)
	f.at(t, "/console/objects")
	other := &fixture{URL: f.URL, server: f.server, top: f.top, folder: f.folder, axe: f.axe, pictures: f.pictures}
	other.openTab(t, f.tab)
	other.open(t, link)
	other.shows(t, "this link was used before: there is a first admin")
	other.good(t, "console-first-used")
}

// serveStores starts a belfry whose configuration has stores, as people write it by hand.
func (f *fixture) serveStores(t *testing.T) {
	t.Helper()
	for _, name := range []string{"belfry.yaml", "book.json"} {
		text, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		if name == "belfry.yaml" {
			text = append(text, f.backend...)
		}
		f.write(t, name, text)
	}
	f.serve(t)
}

func (f *fixture) write(t *testing.T, name string, text []byte) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(f.folder, name), text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// serve starts belfry in its folder.
func (f *fixture) serve(t *testing.T) {
	t.Helper()
	f.server = process.ServePlain(f.top, filepath.Join(f.folder, "belfry.yaml"))
	f.URL = f.server.URL
}

// makeFirstAdmin makes the first admin by the link that a belfry prints on an empty folder, and returns the link.
func (f *fixture) makeFirstAdmin(t *testing.T) (link string) {
	t.Helper()
	found := firstLink.FindStringSubmatch(f.server.Banner)
	if found == nil {
		t.Fatalf("no link for the first admin:\n%s", f.server.Banner)
	}
	f.open(t, found[1])
	f.good(t, "console-first")
	f.fill(t, "#login", address)
	f.fill(t, "#password", password)
	f.press(t, "Make me the admin")
	f.at(t, "/console/start")
	f.shows(t, "You are the first admin of this belfry.")
	f.good(t, "console-start")
	f.press(t, "Dismiss")
	f.at(t, "/console/objects")
	if _, token, _ := strings.Cut(found[1], "="); strings.Contains(f.server.Log(), token) {
		t.Error("the log has the token")
	}
	return found[1]
}

// useStores creates objects, finds the copies of one in the other and on the map, retries what a listener could not
// handle, and verifies all.
func (f *fixture) useStores(t *testing.T) {
	t.Helper()
	f.createObjects(t)
	f.retryDeadLetters(t)
	f.verify(t)
}

// edit writes a text into the editor of an object.
func (f *fixture) edit(t *testing.T, text string) {
	t.Helper()
	editor[bool](t, f, "#text", fmt.Sprintf(`(editor.querySelector("textarea").value = %q, editor.focus(), true)`, text))
	f.run(t, chromedp.KeyEvent(" "))
}

func (f *fixture) createObjects(t *testing.T) {
	t.Helper()
	for _, o := range []struct{ store, wrong, text, uuid string }{
		{"Authors", "", `{"uuid":"austen","name":"Jane Austen"}`, "austen"},
		{"Books", `{"uuid":"lady-susan","author":"austen","year":"soon"}`,
			`{"uuid":"lady-susan","author":"austen","title":"Lady Susan","year":1794}`, "lady-susan"},
	} {
		f.open(t, "/console/objects")
		f.press(t, o.store)
		f.press(t, "New object")
		f.at(t, "/console/objects/"+o.store+"/new")
		if o.wrong != "" {
			f.edit(t, o.wrong)
			f.shows(t, "Not valid.")
			f.good(t, "console-invalid")
		}
		f.edit(t, o.text)
		f.shows(t, "Valid.")
		f.press(t, "Create")
		f.at(t, "/console/objects/"+o.store+"/object/"+o.uuid)
		f.shows(t, "The object has been created.")
		f.shows(t, "Store.Saved") // in its history
	}
	f.shows(t, "Copied to Authors")
	f.click(t, `a[href$="/Authors/object/austen"]`)
	f.at(t, "/console/objects/Authors/object/austen")
	f.shows(t, "Copies of Books")
	f.shows(t, "lady-susan")
	// A worker writes the copy.
	f.until(t, func() error {
		f.open(t, "/console/objects/Authors/object/austen")
		if kept := f.get(t, `document.querySelector("details pre").textContent`); !strings.Contains(kept,
			`"title": "Lady Susan"`) {
			return fmt.Errorf("there is no copy: %s", kept)
		}
		return nil
	})
	f.press(t, "Fields that belfry keeps")
	f.shows(t, `"title": "Lady Susan"`)
	f.open(t, "/console/map")
	f.shows(t, "Authors.books")
	f.shows(t, "not yet")
}

// indexer is a listener that fails until it is mended.
type indexer struct {
	mended  atomic.Bool
	handled atomic.Int64
}

func (i *indexer) handle(_ context.Context, e *listener.Event) error {
	if !i.mended.Load() {
		return listener.Permanent(errors.New("search index: 400 Bad Request for authors/" + e.UUID))
	}
	i.handled.Add(1)
	return nil
}

// retryDeadLetters retries the dead letters of a listener, and resets it.
func (f *fixture) retryDeadLetters(t *testing.T) {
	t.Helper()
	b, err := bus.Open(t.Context(), bus.Options{URL: f.server.Bus, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	i, done := &indexer{}, make(chan error, 1)
	go func() {
		done <- listener.Run(ctx, b,
			slog.New(slog.DiscardHandler), listener.Spec{Name: "search-index", Handler: i.handle,
				Stores: []string{"Authors"}, Start: listener.StartAll()})
	}()
	defer func() {
		cancel()
		<-done
		_ = b.Close(context.Background())
	}()
	f.until(t, func() error {
		f.open(t, "/console/letters?listener=search-index")
		if text := f.text(t); strings.Count(text, "search index: 400 Bad Request for authors/austen") < 2 {
			return fmt.Errorf("no dead letters of the creation and of the copy: %s", text)
		}
		return nil
	})
	f.good(t, "console-letters")
	f.open(t, "/console/workers")
	f.shows(t, "search-index")
	if *screenshots != "" { // with the lines
		f.until(t, func() error {
			if text := f.text(t); strings.Contains(text, "not measured yet") ||
				strings.Contains(text, "one measurement") {
				return errors.New(text)
			}
			return nil
		})
	}
	f.good(t, "console-workers")
	f.press(t, "search-index")
	f.shows(t, "Reset the listener")
	f.good(t, "console-worker")

	f.open(t, "/console/letters?listener=search-index")
	f.click(t, "tbody th a")
	f.shows(t, "\"event\"")
	f.good(t, "console-letter")
	i.mended.Store(true)
	f.press(t, "Retry")
	f.shows(t, "1 of 1 dead letter to be redelivered.")
	f.press(t, "Choose all")
	f.press(t, "Retry the chosen ones")
	f.shows(t, "There are no dead letters.")
	f.until(t, func() error {
		if n := i.handled.Load(); n < 2 {
			return fmt.Errorf("the listener has handled %d events", n)
		}
		return nil
	})

	before := i.handled.Load()
	f.open(t, "/console/workers/search-index")
	evaluate[bool](t, f, `window.confirm = () => true; true`)
	f.fill(t, "#from", "all")
	f.press(t, "Reset the listener")
	f.shows(t, "search-index reads the log from sequence 1 on.")
	f.until(t, func() error {
		if n := i.handled.Load(); n < before+2 {
			return fmt.Errorf("the listener has handled %d events again", n-before)
		}
		return nil
	})
}

var compared = regexp.MustCompile(`Entries compared\s+[1-9]`)

// verify runs a verification, whose result is on the map.
func (f *fixture) verify(t *testing.T) {
	t.Helper()
	f.open(t, "/console/verify")
	f.press(t, "Verify now")
	f.shows(t, "no differences")
	if text := f.text(t); !compared.MatchString(text) {
		t.Errorf("it has compared nothing: %s", text)
	}
	f.good(t, "console-verify")
	f.open(t, "/console/map")
	f.shows(t, "no differences")
	f.good(t, "console-map")
}
