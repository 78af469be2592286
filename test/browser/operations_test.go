package browser

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// testLive receives what happens while it looks, and what happened while it did not: each event once, in their order.
func (f *fixture) testLive(t *testing.T) {
	author := func(uuid, name string) {
		t.Helper()
		f.request(t, "POST", "/authors", fmt.Sprintf(`{"uuid":%q,"name":%q}`, uuid, name), nil)
	}
	shown := func(events ...string) {
		t.Helper()
		f.until(t, func() error {
			all, err := attempt[[]string](f,
				`[...document.querySelectorAll("#events summary code")].map(e => e.textContent)`)
			if err == nil && !slices.Equal(all, events) {
				err = fmt.Errorf("the page shows events of %v, not of %v", all, events)
			}
			return err
		})
	}
	f.open(t, "/console/live")
	f.shows(t, "Live, 0 events")
	author("eliot", "George Eliot")
	shown("eliot")
	f.shows(t, "Authors George Eliot eliot")
	f.press(t, "Pause")
	f.shows(t, "Paused after 1 event")
	f.until(t, func() error {
		n, err := f.server.Metric("belfry_live_clients")
		if err == nil && n != 0 {
			err = fmt.Errorf("%v streams are open", n)
		}
		return err
	})
	author("gaskell", "Elizabeth Gaskell")
	f.request(t, "POST", "/books", `{"uuid":"cranford","title":"Cranford","year":1853}`, nil)
	author("bronte", "Charlotte Brontë")
	shown("eliot")
	f.click(t, `input[name="store"][value="Authors"]`)
	f.press(t, "Resume")
	shown("bronte", "gaskell", "eliot") // and no book
	f.shows(t, "Live, 3 events")
	f.click(t, "#events li:first-child summary")
	f.until(t, func() error {
		if body := f.get(t, `document.querySelector('#events li:first-child pre').textContent`); !strings.Contains(body,
			`"uuid": "bronte"`) {
			return fmt.Errorf("the event is shown as %q", body)
		}
		return nil
	})
	f.good(t, "console-live")
	f.press(t, "From the oldest event")
	f.shows(t, "austen")
}

// testPages sets a new password by the mail that the console shows, as people do who forgot theirs: by plain forms.
func (f *fixture) testPages(t *testing.T) {
	f.open(t, "/")
	f.shows(t, "belfry is running")
	f.good(t, "page-start")
	f.open(t, "/recovery")
	f.fill(t, "#login", "bob@example.com")
	f.press(t, "Send the mail")
	f.shows(t, "If there is an account")
	f.until(t, func() error {
		f.open(t, "/console/mails")
		if text := f.text(t); !strings.Contains(text, "<bob@example.com>\tSet a new password") {
			return errors.New(text) // others may have such a mail, too
		}
		return nil
	})
	f.good(t, "console-mails")
	f.run(t, chromedp.Click(chromedp.Search(
		`//tr[contains(., "bob@example.com")]//a[.="Set a new password"]`), chromedp.NodeVisible))
	f.shows(t, "As it was written")
	f.good(t, "console-mail")
	link, err := url.Parse(f.get(t, `document.querySelector("p.lines a").href`))
	if err != nil {
		t.Fatal(err)
	}
	f.press(t, "Log out")
	f.at(t, "/console/login")
	f.open(t, "/recovery?mail=sent") // the mail is on another device
	f.click(t, "details summary")
	f.fill(t, "#mailed-login", link.Query().Get("login"))
	f.fill(t, "#mailed-token", link.Query().Get("token"))
	f.good(t, "page-recovery-sent")
	f.press(t, "Continue")
	f.at(t, "/recovery?"+link.RawQuery)
	f.good(t, "page-recovery")
	f.fill(t, "#password", "a new password")
	f.press(t, "Set the password")
	f.shows(t, "Your new password is set")
	f.press(t, "Log in")
	f.fill(t, "#login", "bob@example.com")
	f.fill(t, "#password", "wrong")
	f.good(t, "page-login")
	f.press(t, "Log in")
	f.shows(t, "the password is wrong")
	f.good(t, "page-failed")
	f.press(t, "Log in")
	f.fill(t, "#login", "bob@example.com")
	f.fill(t, "#password", "a new password")
	f.press(t, "Log in")
	f.shows(t, "You are logged in")
	f.press(t, "Continue")
	f.at(t, "/")
	f.press(t, "Log out")
	f.press(t, "Register")
	f.shows(t, "New password")
	f.good(t, "page-register")
}
