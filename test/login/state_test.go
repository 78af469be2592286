package login

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	"belfry/test/provider"
)

// copyOf is a callback with a changed query.
func copyOf(u *url.URL, change func(url.Values)) *url.URL {
	c, query := *u, u.Query()
	change(query)
	c.RawQuery = query.Encode()
	return &c
}

// returned is the parameter of a callback that tells which visit it belongs to.
func returned(name string) string {
	if name == "twitter" {
		return "oauth_token"
	}
	return "state"
}

// A callback is good for the browser that left, once.
func TestACallbackIsBoundToTheBrowser(t *testing.T) {
	w := begin(t, options{})
	for _, name := range names {
		w.sub(name, func(w *world) {
			counted := w.count()
			b, stranger := w.browser(), w.browser()
			callback := b.leave(name)
			stranger.is(stranger.back(callback), "out state") // without a cookie
			stranger.leave(name)
			stranger.is(stranger.back(callback), "out state") // with that of another visit

			// With the right cookie's name, and another visit's secret.
			begun := b.cookies()[0]
			forger := w.browser()
			forger.header.Set("Cookie", begun.Name+"="+stranger.cookies()[0].Value)
			forger.is(forger.back(callback), "out state")

			for _, wrong := range []string{"", "made-up", strings.ToLower(callback.Query().Get(returned(name))), strings.Repeat("x", 10_000)} {
				b.is(b.back(copyOf(callback, func(q url.Values) { q.Set(returned(name), wrong) })), "out state")
			}
			b.is(b.back(copyOf(callback, func(q url.Values) { clear(q) })), "out state")
			if w.count() != counted {
				w.Fatal("somebody was registered")
			}

			// None of this has ended the visit.
			w.is(b.back(callback), "in "+name)
			user, cookie := b.who(), b.session()
			b.is(b.back(callback), "out state")
			replay := w.browser()
			replay.header.Set("Cookie", begun.Name+"="+begun.Value)
			replay.is(replay.back(callback), "out state")
			b.is(b.who(), user)
			b.is(b.session(), cookie)
		})
	}
}

// is fails unless a text is the one wanted.
func (w *world) is(got, want string) {
	w.Helper()
	if got != want {
		w.Fatalf("got %q, want %q", got, want)
	}
}

// Two tabs of one browser are under way at once, and neither disturbs the other.
func TestConcurrentFlowsOfOneBrowser(t *testing.T) {
	w := begin(t, options{})
	for i, name := range names {
		for _, other := range []string{name, names[(i+1)%len(names)]} {
			w.sub(name+" and "+other, func(w *world) {
				b := w.browser()
				w.providers.User(fmt.Sprint(i, 1, name == other))
				first := b.leave(name)
				w.providers.User(fmt.Sprint(i, 2, name == other))
				second := b.leave(other)
				b.is(b.back(second), "in "+other)
				later := b.who()
				b.is(b.back(first), "in "+name)
				if user := b.who(); user == later || user == "" {
					w.Errorf("the second login is %s, and so is the first", user)
				}
			})
		}
	}
}

// Two tabs finish the first login of one identity at the same time.
func TestTwoTabsCreateOneUser(t *testing.T) {
	w := begin(t, options{})
	for i := range 5 {
		for _, name := range names {
			w.providers.User(fmt.Sprint(i))
			b := w.browser()
			callbacks := []*url.URL{b.leave(name), b.leave(name)}
			var both sync.WaitGroup
			for _, callback := range callbacks {
				both.Go(func() {
					if got := b.back(callback); got != "in "+name {
						t.Errorf("%s: %s", name, got)
					}
				})
			}
			both.Wait()
			if user := b.who(); user == "" || len(w.registered(user)) != 1 {
				t.Errorf("%s: the user %q, %d times Register", name, user, len(w.registered(user)))
			}
		}
	}
	if n := 5 * len(names); w.count() != [2]int{n, n} || len(w.registered("*")) != n {
		t.Errorf("users and idents: %v, want %d of each", w.count(), n)
	}
}

// A visit that was to link a way in to an account ends with that account, or
// with nothing.
func TestAFlowLinksOnlyToTheUserWhoBeganIt(t *testing.T) {
	w := begin(t, options{})
	for i, name := range names {
		w.sub(name, func(w *world) {
			first := names[(i+1)%len(names)]
			id := func(n int) string { return fmt.Sprint(100*i + n) }
			as := func(b *browser, n int) string {
				w.providers.User(id(n))
				return b.enters(first)
			}
			b := w.browser()
			as(b, 1)
			w.providers.User(id(2))
			out := b.leave(name)
			b.ask(http.MethodDelete, "/auth", "")
			b.is(b.back(out), "out state")
			b.is(b.who(), "")

			ada := as(b, 1)
			w.providers.User(id(2))
			other := b.leave(name)
			b.ask(http.MethodDelete, "/auth", "")
			bob := as(b, 3)
			b.is(b.back(other), "out state")
			b.is(b.who(), bob)
			if w.ident(id(2), name) != nil {
				w.Error("the way in was linked")
			}

			// The same user, logged in anew, may finish.
			b.ask(http.MethodDelete, "/auth", "")
			as(b, 1)
			w.providers.User(id(2))
			again := b.leave(name)
			b.ask(http.MethodDelete, "/auth", "")
			as(b, 1)
			b.is(b.back(again), "in "+name)
			b.is(w.ident(id(2), name)["user"].(string), ada)

			// Who was nobody at first only logs in.
			b = w.browser()
			w.providers.User(id(4))
			nobody := b.leave(name)
			as(b, 1)
			b.is(b.back(nobody), "in "+name)
			if user := b.who(); user == ada || w.ident(id(4), name)["user"] != user {
				w.Errorf("the way in of user %s was linked", user)
			}
		})
	}
}

// A page of a stranger makes nobody link the stranger's way in.
func TestAnotherSiteCannotStartLinking(t *testing.T) {
	w := begin(t, options{})
	for i, c := range []struct {
		site, referer string
		links         bool
	}{
		{"cross-site", "", false},
		{"cross-site", "https://evil.test/page", false},
		{"cross-site", w.url + ".evil.test/", false},
		{"cross-site", w.url + "/page", true},
		{"same-site", "", false},
		{"same-site", "https://sister.test/", false},
		{"", "https://evil.test/page", false},
		{"same-origin", "", true},
		{"none", "", true},
		{"", "", true},
	} {
		w.providers.User(fmt.Sprint("owner", i))
		b := w.browser()
		owner := b.enters("google")
		w.providers.User(fmt.Sprint("stranger", i))
		for name, value := range map[string]string{"Sec-Fetch-Site": c.site, "Referer": c.referer} {
			if value != "" {
				b.header.Set(name, value)
			}
		}
		b.is(b.visit("amazon"), "in amazon")
		if linked := b.who() == owner; linked != c.links {
			t.Errorf("%+v: linked %v", c, linked)
		}
	}
}

// Two tabs link two ways in; one provider takes its time, so that the other
// tab is done first.
func TestTwoTabsLinkTwoIdentities(t *testing.T) {
	w := begin(t, options{})
	b := w.browser()
	user := b.enters("amazon")
	slow, fast := b.leave("github"), b.leave("google")
	waiting, release := w.providers.Slow(provider.Emails) // of GitHub alone
	var first sync.WaitGroup
	first.Go(func() {
		if got := b.back(slow); got != "in github" {
			t.Errorf("the slow one: %s", got)
		}
	})
	<-waiting
	b.is(b.back(fast), "in google")
	release()
	first.Wait()
	b.is(b.who(), user)
	b.hasWays("583231_amazon", "583231_github", "583231_google")
}
