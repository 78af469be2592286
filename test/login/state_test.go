package login

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	"belfry/pkg/account/once"
	"belfry/test/provider"
)

// copyOf returns a callback with a changed query.
func copyOf(u *url.URL, change func(url.Values)) *url.URL {
	c, query := *u, u.Query()
	change(query)
	c.RawQuery = query.Encode()
	return &c
}

// returned is the parameter of a callback that identifies its flow.
func returned(name string) string {
	if name == "twitter" {
		return "oauth_token"
	}
	return "state"
}

// A callback is valid once, for the browser that started the flow.
func TestACallbackIsBoundToTheBrowser(t *testing.T) {
	t.Parallel()
	w := newFixture(t, options{})
	for _, name := range names {
		w.sub(name, func(w *fixture) {
			counted := w.count()
			b, stranger := w.browser(), w.browser()
			callback := b.begin(name)
			stranger.wantText(stranger.finish(callback), "out state") // without a cookie
			stranger.begin(name)
			stranger.wantText(stranger.finish(callback), "out state") // with that of another visit

			// With the right cookie's name, and the secret of another flow.
			begun := b.cookies()[0]
			forger := w.browser()
			forger.header.Set("Cookie", begun.Name+"="+stranger.cookies()[0].Value)
			forger.wantText(forger.finish(callback), "out state")

			for _, wrong := range []string{"", "made-up", strings.ToLower(callback.Query().Get(returned(name))),
				strings.Repeat("x", 10_000)} {
				b.wantText(b.finish(copyOf(callback, func(q url.Values) { q.Set(returned(name), wrong) })), "out state")
			}
			b.wantText(b.finish(copyOf(callback, func(q url.Values) { clear(q) })), "out state")
			if w.count() != counted {
				w.Fatal("somebody was registered")
			}

			// None of this has consumed the flow.
			w.wantText(b.finish(callback), "in "+name)
			user, cookie := b.userUUID(), b.session()
			b.wantText(b.finish(callback), "in "+name) // where the first has led, and no more
			replay := w.browser()
			replay.header.Set("Cookie", begun.Name+"="+begun.Value)
			replay.wantText(replay.finish(callback), "in "+name) // it has the cookie of the flow
			replay.wantText(replay.session(), "")
			other := w.browser()
			other.wantText(other.finish(callback), "out state")
			other.wantText(other.session(), "")
			b.wantText(b.userUUID(), user)
			b.wantText(b.session(), cookie)
		})
	}
}

// A browser sends several cookies of the name of a flow where others were set for other paths or hosts: the one of the
// flow counts.
func TestTheCookieOfAFlowIsFoundAmongOthers(t *testing.T) {
	t.Parallel()
	w := newFixture(t, options{})
	for _, name := range names {
		w.sub(name, func(w *fixture) {
			b := w.browser()
			callback := b.begin(name)
			own := b.cookies()[0]
			other := func() string { return own.Name + "=" + once.NewBrowser() + "; " }
			b.header.Set("Cookie", other()+other())
			b.wantText(b.finish(callback), "out state")
			b.header.Set("Cookie", other()+other()+own.String())
			b.wantText(b.finish(callback), "in "+name)
			b.header.Set("Cookie", other()+own.String())
			b.wantText(b.finish(callback), "in "+name) // again
			b.header.Del("Cookie")
			if b.userUUID() == "" {
				w.Error("nobody is logged in")
			}
		})
	}
}

// wantText fails unless a text is the one wanted.
func (w *fixture) wantText(got, want string) {
	w.Helper()
	if got != want {
		w.Fatalf("got %q, want %q", got, want)
	}
}

// Two flows in tabs of one browser do not affect each other.
func TestConcurrentFlowsOfOneBrowser(t *testing.T) {
	t.Parallel()
	w := newFixture(t, options{race: true})
	for i, name := range names {
		for _, other := range []string{name, names[(i+1)%len(names)]} {
			w.sub(name+" and "+other, func(w *fixture) {
				b := w.browser()
				w.providers.User(fmt.Sprint(i, 1, name == other))
				first := b.begin(name)
				w.providers.User(fmt.Sprint(i, 2, name == other))
				second := b.begin(other)
				b.wantText(b.finish(second), "in "+other)
				later := b.userUUID()
				b.wantText(b.finish(first), "in "+name)
				if user := b.userUUID(); user == later || user == "" {
					w.Errorf("the second login is %s, and so is the first", user)
				}
			})
		}
	}
}

// Two tabs finish the first login of one identity concurrently.
func TestTwoTabsCreateOneUser(t *testing.T) {
	t.Parallel()
	w := newFixture(t, options{race: true})
	const rounds = 3
	users := map[string]bool{} // by uuid
	for i := range rounds {
		for _, name := range names {
			w.providers.User(fmt.Sprint(i))
			b := w.browser()
			callbacks := []*url.URL{b.begin(name), b.begin(name)}
			var both sync.WaitGroup
			for _, callback := range callbacks {
				both.Go(func() {
					if got := b.finish(callback); got != "in "+name {
						t.Errorf("%s: %s", name, got)
					}
				})
			}
			both.Wait()
			users[b.userUUID()] = true
		}
	}
	n := rounds * len(names)
	if w.count() != [2]int{n, n} {
		t.Errorf("users and idents: %v, want %d of each", w.count(), n)
	}
	events := w.registerEvents("*")
	for _, e := range events {
		delete(users, e.UUID)
	}
	if len(events) != n || len(users) > 0 {
		t.Errorf("%d Register events, want %d; none of users %v", len(events), n, users)
	}
}

// A flow that links an identity links it to the user who started it, or to no user.
func TestAFlowLinksOnlyToTheUserWhoBeganIt(t *testing.T) {
	t.Parallel()
	w := newFixture(t, options{})
	for i, name := range names {
		w.sub(name, func(w *fixture) {
			first := names[(i+1)%len(names)]
			id := func(n int) string { return fmt.Sprint(100*i + n) }
			as := func(b *browser, n int) string {
				w.providers.User(id(n))
				return b.mustLogin(first)
			}
			b := w.browser()
			as(b, 1)
			w.providers.User(id(2))
			out := b.begin(name)
			b.request(http.MethodDelete, "/auth", "")
			b.wantText(b.finish(out), "out state")
			b.wantText(b.userUUID(), "")

			ada := as(b, 1)
			w.providers.User(id(2))
			other := b.begin(name)
			b.request(http.MethodDelete, "/auth", "")
			bob := as(b, 3)
			b.wantText(b.finish(other), "out state")
			b.wantText(b.userUUID(), bob)
			if w.ident(id(2), name) != nil {
				w.Error("the way in was linked")
			}

			// The same user, with a new session, may finish.
			b.request(http.MethodDelete, "/auth", "")
			as(b, 1)
			w.providers.User(id(2))
			again := b.begin(name)
			b.request(http.MethodDelete, "/auth", "")
			as(b, 1)
			b.wantText(b.finish(again), "in "+name)
			b.wantText(w.ident(id(2), name)["user"].(string), ada)

			// A flow that started without a session only logs in.
			b = w.browser()
			w.providers.User(id(4))
			anonymous := b.begin(name)
			as(b, 1)
			b.wantText(b.finish(anonymous), "in "+name)
			if user := b.userUUID(); user == ada || w.ident(id(4), name)["user"] != user {
				w.Errorf("the way in of user %s was linked", user)
			}
		})
	}
}

func TestAnotherSiteCannotStartLinkingNorEndASession(t *testing.T) {
	t.Parallel()
	w := newFixture(t, options{})
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
		owner := b.mustLogin("google")
		w.providers.User(fmt.Sprint("stranger", i))
		for name, value := range map[string]string{"Sec-Fetch-Site": c.site, "Referer": c.referer} {
			if value != "" {
				b.header.Set(name, value)
			}
		}
		if c.links {
			b.wantText(b.login("amazon"), "in amazon")
		} else {
			b.wantText(b.login("amazon"), "out origin")
		}
		if b.userUUID() != owner {
			t.Errorf("%+v: the session has ended", c)
		}
		stranger := w.browser()
		if linked := stranger.mustLogin("amazon") == owner; linked != c.links {
			t.Errorf("%+v: linked %v", c, linked)
		}
	}
}

// Two tabs link two identities; one provider is slow, so that the other tab
// finishes first.
func TestTwoTabsLinkTwoIdentities(t *testing.T) {
	t.Parallel()
	w := newFixture(t, options{})
	b := w.browser()
	user := b.mustLogin("amazon")
	slow, fast := b.begin("github"), b.begin("google")
	waiting, release := w.providers.Slow(provider.Emails) // of GitHub alone
	var first sync.WaitGroup
	first.Go(func() {
		if got := b.finish(slow); got != "in github" {
			t.Errorf("the slow one: %s", got)
		}
	})
	<-waiting
	b.wantText(b.finish(fast), "in google")
	release()
	first.Wait()
	b.wantText(b.userUUID(), user)
	b.waitForIdents("583231_amazon", "583231_github", "583231_google")
}
