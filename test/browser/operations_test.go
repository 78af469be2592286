package browser

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"belfry/pkg/bus"
	"belfry/pkg/listener"
)

// shipping is a listener that fails until it is mended.
type shipping struct {
	mended  atomic.Bool
	handled atomic.Int64
}

func (s *shipping) handle(_ context.Context, e *listener.Event) error {
	if !s.mended.Load() {
		return listener.Permanent(errors.New("no parcels left for " + e.UUID))
	}
	s.handled.Add(1)
	return nil
}

// testWorkers retries the dead letters of a listener, and resets it.
func (f *fixture) testWorkers(t *testing.T) {
	b, err := bus.Open(t.Context(), bus.Options{URL: f.server.Bus, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	s, done := &shipping{}, make(chan error, 1)
	go func() {
		done <- listener.Run(ctx, b, slog.New(slog.DiscardHandler), listener.Spec{Name: "shipping", Handler: s.handle, Stores: []string{"Authors"}, Start: listener.StartAll()})
	}()
	defer func() {
		cancel()
		<-done
		_ = b.Close(context.Background())
	}()
	f.until(t, func() error {
		f.open(t, "/console/letters?listener=shipping")
		if text := f.text(t); !strings.Contains(text, "no parcels left for lovelace") || !strings.Contains(text, "no parcels left for austen") {
			return fmt.Errorf("no dead letters: %s", text)
		}
		return nil
	})
	f.good(t, "console-letters")
	f.open(t, "/console/workers")
	f.shows(t, "shipping")
	f.good(t, "console-workers")
	f.press(t, "shipping")
	f.shows(t, "Reset the listener")
	f.good(t, "console-worker")

	f.open(t, "/console/letters?listener=shipping")
	f.click(t, "tbody th a")
	f.shows(t, "\"event\"")
	f.good(t, "console-letter")
	s.mended.Store(true)
	f.press(t, "Retry")
	f.shows(t, "1 of 1 dead letters will be redelivered.")
	f.press(t, "Choose all")
	f.press(t, "Retry the chosen ones")
	f.shows(t, "There are no dead letters.")
	f.until(t, func() error {
		if n := s.handled.Load(); n < 2 {
			return fmt.Errorf("the listener has handled %d events", n)
		}
		return nil
	})

	before := s.handled.Load()
	f.open(t, "/console/workers/shipping")
	evaluate[bool](t, f, `window.confirm = () => true; true`)
	f.fill(t, "#from", "all")
	f.press(t, "Reset the listener")
	f.shows(t, "shipping reads the log from sequence 1 on.")
	f.until(t, func() error {
		if n := s.handled.Load(); n < before+2 {
			return fmt.Errorf("the listener has handled %d events again", n-before)
		}
		return nil
	})
}

// testVerify runs a verification, whose result is on the map.
func (f *fixture) testVerify(t *testing.T) {
	f.open(t, "/console/map")
	f.shows(t, "not yet")
	f.open(t, "/console/verify")
	f.press(t, "Verify now")
	f.shows(t, "no differences")
	f.good(t, "console-verify")
	f.open(t, "/console/map")
	f.shows(t, "Authors.books")
	f.shows(t, "no differences")
	f.good(t, "console-map")
}

// testLive receives what happens while it looks, and what happened while it did not.
func (f *fixture) testLive(t *testing.T) {
	f.open(t, "/console/live")
	f.shows(t, "Live, 0 events")
	author := func(uuid string) { f.request(t, "POST", "/authors", fmt.Sprintf(`{"uuid":%q}`, uuid), nil) }
	author("live-1")
	f.shows(t, "live-1")
	f.press(t, "Pause")
	f.shows(t, "Paused after 1 event")
	author("live-2")
	f.request(t, "POST", "/books", `{"uuid":"live-book","title":"Unseen","year":2000}`, nil)
	author("live-3")
	f.click(t, `input[name="store"][value="Authors"]`)
	f.press(t, "Resume")
	f.shows(t, "live-3")
	f.shows(t, "Live, 3 events")
	if text := f.text(t); !strings.Contains(text, "live-2") || strings.Contains(text, "live-book") {
		t.Errorf("an event was missed, or one that is not chosen is shown: %s", text)
	}
	f.click(t, "#events li:first-child summary")
	f.until(t, func() error {
		if body := f.get(t, `document.querySelector('#events li:first-child pre').textContent`); !strings.Contains(body, `"uuid": "live-3"`) {
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
		if text := f.text(t); !strings.Contains(text, "Set a new password") {
			return errors.New(text)
		}
		return nil
	})
	f.good(t, "console-mails")
	f.press(t, "Set a new password")
	f.shows(t, "As it was written")
	f.good(t, "console-mail")
	link, err := url.Parse(f.get(t, `document.querySelector("p.lines a").href`))
	if err != nil {
		t.Fatal(err)
	}
	f.press(t, "Log out")
	f.at(t, "/console/login")
	f.open(t, link.RequestURI())
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
